// Forced include for ggml-vulkan.
//
// Fault: Vulkan headers before 1.3.272 (Debian 12 has 1.3.239) do not know VK_EXT_layer_settings, whose C++ types
// upstream names when it switches validation on.
// Cure: the three types with the layout that the extension's specification gives them.
// Can go when: no supported distribution ships headers without the extension.
#if defined(__cplusplus) && defined(__has_include)
#if __has_include(<vulkan/vulkan.hpp>)
#include <vulkan/vulkan.hpp>
#ifndef VK_EXT_layer_settings
namespace VULKAN_HPP_NAMESPACE {
enum class LayerSettingTypeEXT { eBool32 = 0, eInt32 = 1, eInt64 = 2, eUint32 = 3, eUint64 = 4, eFloat32 = 5, eFloat64 = 6, eString = 7 };
struct LayerSettingEXT {
    const char *        pLayerName   = nullptr;
    const char *        pSettingName = nullptr;
    LayerSettingTypeEXT type         = LayerSettingTypeEXT::eBool32;
    uint32_t            valueCount   = 0;
    const void *        pValues      = nullptr;
};
struct LayerSettingsCreateInfoEXT {
    StructureType           sType        = static_cast<StructureType>(1000496000);
    const void *            pNext        = nullptr;
    uint32_t                settingCount = 0;
    const LayerSettingEXT * pSettings    = nullptr;
};
}  // namespace VULKAN_HPP_NAMESPACE
#endif
#endif
#endif

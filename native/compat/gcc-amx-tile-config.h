// Forced include for the C++ files of ggml-cpu when the compiler is GCC.
//
// Fault: GCC's _tile_loadconfig() declares to the optimiser that it reads one pointer's worth of memory (8 bytes) of
// the 64-byte tile configuration. The stores to the other 56 bytes then look dead and are removed, and the first tile
// instruction after it raises an illegal-instruction signal. Seen with GCC 12.2 at -O2 and above.
// Cure: the same instruction with a memory operand of the true size. It is correct with every compiler.
// Can go when: the oldest GCC that we support declares 64 bytes in its amxtileintrin.h.
#if defined(__AMX_TILE__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

static inline __attribute__((always_inline)) void gl_tile_loadconfig(const void * config) {
    typedef const char gl_tile_config_bytes[64];
    __asm__ volatile("ldtilecfg\t%0" : : "m"(*static_cast<gl_tile_config_bytes *>(config)));
}
#define _tile_loadconfig gl_tile_loadconfig
#endif

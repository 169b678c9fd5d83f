//! THE table: cargo feature, CMake options, what to link, platforms, one line of documentation.
//!
//! A new backend is a new row here (and a feature in `Cargo.toml`); everything else follows from it. Each fact is decided
//! by target. A feature that is off gets its option explicitly OFF: upstream turns Metal and BLAS on by itself on Apple
//! systems.

use super::options::{BlasVendor, DEFAULT_CUDA_ARCHS, DEFAULT_HIP_ARCHS, OpenMpLib, Options};
use super::plan::Link;
use super::target::{Arch, Env, Os, Target};

/// A program that a build needs, with what to tell somebody who lacks it.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Its name on `PATH`.
    pub program: &'static str,
    /// What for.
    pub why: &'static str,
    /// Package manager or system, and the command there.
    pub install: &'static [(&'static str, &'static str)],
    /// The variable that says where it is when not on `PATH`.
    pub variable: &'static str,
    /// Whether it is needed, by target, machine that builds, and options.
    pub when: fn(&Target, &Target, &Options) -> bool,
}

/// One row of [`BACKENDS`].
#[derive(Debug, Clone, Copy)]
pub struct Backend {
    /// Cargo feature.
    pub feature: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// One line.
    pub doc: &'static str,
    /// Where it builds, for people.
    pub platforms: &'static str,
    /// What must be installed, for people.
    pub needs: &'static str,
    /// Upstream's switch.
    pub option: &'static str,
    /// Further options that go with it, when it is on.
    pub cmake: &'static [(&'static str, &'static str)],
    /// Options that depend on target or environment, when it is on.
    pub defines: fn(&Target, &Options) -> Vec<(String, String)>,
    /// Whether it builds for a target.
    pub supported: fn(&Target) -> bool,
    /// Features that cannot be in the same program.
    pub conflicts: &'static [&'static str],
    /// Static libraries that it adds, users first.
    pub archives: &'static [&'static str],
    /// What its libraries need in turn.
    pub link: fn(&Target, &Options) -> Vec<Link>,
    /// What to look for before CMake starts.
    pub preflight: &'static [Tool],
}

/// The row of a feature.
pub fn find(feature: &str) -> Option<&'static Backend> {
    BACKENDS.iter().find(|backend| backend.feature == feature)
}

/// Options of the CUDA sources, which HIP compiles as well.
macro_rules! cuda_sources {
    ($($more:expr),* $(,)?) => {
        &[
            ("GGML_CUDA_FA", "ON"),
            // Upstream's small set of flash attention instances; all of them take hours.
            ("GGML_CUDA_FA_ALL_QUANTS", "OFF"),
            ("GGML_CUDA_FA_QUANTS", "q4_0-q4_0;q8_0-q8_0;f16-f16;bf16-bf16"),
            ("GGML_CUDA_FORCE_CUBLAS", "OFF"),
            ("GGML_CUDA_FORCE_MMQ", "OFF"),
            ("GGML_CUDA_NO_PEER_COPY", "OFF"),
            $($more),*
        ]
    };
}

/// Every backend.
pub const BACKENDS: &[Backend] = &[
    Backend {
        feature: "cuda",
        title: "CUDA",
        doc: "NVIDIA GPUs.",
        platforms: "Linux (x86_64, aarch64), Windows (MSVC)",
        needs: "CUDA toolkit 11.8 or later; the driver at run time",
        option: "GGML_CUDA",
        cmake: cuda_sources![
            ("GGML_CUDA_CCCL_VERSION", ""),
            ("GGML_CUDA_COMPRESSION_MODE", "size"),
            ("GGML_CUDA_GRAPHS", "ON"),
            // Found or not found on the machine that builds would change what is built.
            ("GGML_CUDA_NCCL", "OFF"),
            ("GGML_CUDA_NO_VMM", "OFF"),
        ],
        defines: cuda_defines,
        supported: |target| match target.os {
            Os::Linux => matches!(target.arch, Arch::X86_64 | Arch::Aarch64) && target.env == Env::Gnu,
            Os::Windows => target.arch == Arch::X86_64 && target.is_msvc(),
            _ => false,
        },
        conflicts: &["hip"],
        archives: &["ggml-cuda"],
        link: cuda_link,
        preflight: &[Tool {
            program: "nvcc",
            why: "feature `cuda`: it compiles the CUDA kernels (CUDA toolkit)",
            install: &[
                ("Debian, Ubuntu", "apt-get install nvidia-cuda-toolkit, or NVIDIA's repository for a newer one"),
                ("Fedora", "NVIDIA's repository, then dnf install cuda-toolkit"),
                ("Arch", "pacman -S cuda"),
                ("Windows", "winget install Nvidia.CUDA"),
            ],
            variable: "CUDA_PATH",
            when: |_, _, options| options.cuda_path.is_none() && options.cmake_define("CMAKE_CUDA_COMPILER").is_none(),
        }],
    },
    Backend {
        feature: "hip",
        title: "HIP (ROCm)",
        doc: "AMD GPUs.",
        platforms: "Linux (x86_64)",
        needs: "ROCm 6.1 or later with hipBLAS and rocBLAS",
        option: "GGML_HIP",
        cmake: cuda_sources![
            ("GGML_HIP_EXPORT_METRICS", "OFF"),
            ("GGML_HIP_GRAPHS", "ON"),
            ("GGML_HIP_MMQ_MFMA", "ON"),
            ("GGML_HIP_NO_VMM", "ON"),
            ("GGML_HIP_RCCL", "OFF"),
        ],
        defines: |_, options| {
            let archs = options.hip_archs.clone().unwrap_or_else(|| DEFAULT_HIP_ARCHS.to_owned());
            vec![("CMAKE_HIP_ARCHITECTURES".to_owned(), archs.clone()), ("GPU_TARGETS".to_owned(), archs)]
        },
        supported: |target| target.os == Os::Linux && target.arch == Arch::X86_64 && target.env == Env::Gnu,
        conflicts: &["cuda"],
        archives: &["ggml-hip"],
        link: |_, options| {
            let root = options.rocm_path.as_deref().unwrap_or("/opt/rocm");
            vec![Link::Search(join(root, "lib")), dylib("hipblas"), dylib("rocblas"), dylib("amdhip64")]
        },
        preflight: &[Tool {
            program: "hipconfig",
            why: "feature `hip`: CMake asks it where the HIP compiler is (ROCm)",
            install: &[
                ("Debian, Ubuntu", "AMD's repository, then apt-get install rocm-dev hipblas-dev rocblas-dev"),
                ("Fedora", "dnf install rocm-hip-devel hipblas-devel rocblas-devel"),
                ("Arch", "pacman -S rocm-hip-sdk"),
            ],
            variable: "ROCM_PATH",
            when: |_, _, options| options.rocm_path.is_none(),
        }],
    },
    Backend {
        feature: "metal",
        title: "Metal",
        doc: "Apple GPUs; the shader library is embedded.",
        platforms: "macOS, iOS, tvOS, visionOS",
        needs: "Xcode's command line tools",
        option: "GGML_METAL",
        cmake: &[
            ("GGML_METAL_EMBED_LIBRARY", "ON"),
            ("GGML_METAL_MACOSX_VERSION_MIN", ""),
            ("GGML_METAL_NDEBUG", "OFF"),
            ("GGML_METAL_SHADER_DEBUG", "OFF"),
            ("GGML_METAL_STD", ""),
        ],
        defines: no_defines,
        supported: Target::is_apple,
        conflicts: &[],
        archives: &["ggml-metal"],
        link: |_, _| ["Foundation", "Metal", "MetalKit"].map(framework).to_vec(),
        preflight: &[],
    },
    Backend {
        feature: "vulkan",
        title: "Vulkan",
        doc: "GPUs of every vendor through Vulkan.",
        platforms: "Linux, Windows, Android, FreeBSD, macOS (MoltenVK)",
        needs: "Vulkan headers and loader 1.3, glslc, SPIRV-Headers",
        option: "GGML_VULKAN",
        cmake: &[
            ("GGML_VULKAN_CHECK_RESULTS", "OFF"),
            ("GGML_VULKAN_DEBUG", "OFF"),
            ("GGML_VULKAN_MEMORY_DEBUG", "OFF"),
            ("GGML_VULKAN_RUN_TESTS", "OFF"),
            ("GGML_VULKAN_SHADER_DEBUG_INFO", "OFF"),
            ("GGML_VULKAN_VALIDATE", "OFF"),
        ],
        defines: no_defines,
        supported: |target| matches!(target.os, Os::Linux | Os::Windows | Os::Android | Os::FreeBsd | Os::MacOs),
        conflicts: &[],
        archives: &["ggml-vulkan"],
        link: |target, options| {
            let folder = if target.is_windows() { "Lib" } else { "lib" };
            // The SDK's libraries are for desktops; Android's come with the NDK.
            let sdk = options.vulkan_sdk.as_deref().filter(|_| target.os != Os::Android);
            let mut link: Vec<Link> = sdk.map(|sdk| Link::Search(join(sdk, folder))).into_iter().collect();
            link.push(dylib(if target.is_windows() { "vulkan-1" } else { "vulkan" }));
            link
        },
        preflight: &[Tool {
            program: "glslc",
            why: "feature `vulkan`: it compiles the shaders; the Vulkan and SPIR-V headers are needed with it",
            install: &[
                ("Debian, Ubuntu", "apt-get install glslc libvulkan-dev spirv-headers"),
                ("Fedora", "dnf install glslc vulkan-loader-devel spirv-headers-devel"),
                ("Arch", "pacman -S shaderc vulkan-headers vulkan-icd-loader spirv-headers"),
                ("macOS", "brew install shaderc vulkan-headers vulkan-loader molten-vk spirv-headers"),
                ("Windows", "winget install KhronosGroup.VulkanSDK"),
            ],
            variable: "VULKAN_SDK",
            when: |_, _, options| {
                options.vulkan_sdk.is_none() && options.cmake_define("Vulkan_GLSLC_EXECUTABLE").is_none()
            },
        }],
    },
    Backend {
        feature: "opencl",
        title: "OpenCL",
        doc: "Qualcomm Adreno and some Intel GPUs through OpenCL.",
        platforms: "Linux, Windows, Android",
        needs: "OpenCL headers and loader, Python 3",
        option: "GGML_OPENCL",
        cmake: &[
            ("GGML_OPENCL_EMBED_KERNELS", "ON"),
            ("GGML_OPENCL_PROFILING", "OFF"),
            ("GGML_OPENCL_TARGET_VERSION", "300"),
            ("GGML_OPENCL_USE_ADRENO_BIN_KERNELS", "OFF"),
            ("GGML_OPENCL_USE_ADRENO_KERNELS", "ON"),
        ],
        defines: no_defines,
        supported: |target| matches!(target.os, Os::Linux | Os::Windows | Os::Android),
        conflicts: &[],
        archives: &["ggml-opencl"],
        link: |_, _| vec![dylib("OpenCL")],
        preflight: &[Tool {
            program: "python3",
            why: "feature `opencl`: it embeds the kernels; the OpenCL headers and loader are needed with it",
            install: &[
                ("Debian, Ubuntu", "apt-get install python3 ocl-icd-opencl-dev opencl-headers"),
                ("Fedora", "dnf install python3 ocl-icd-devel opencl-headers"),
                ("Arch", "pacman -S python ocl-icd opencl-headers"),
            ],
            variable: "Python3_ROOT_DIR",
            // Windows calls it python, or py; CMake finds it in the registry.
            when: |_, host, options| !host.is_windows() && options.cmake_define("Python3_EXECUTABLE").is_none(),
        }],
    },
    Backend {
        feature: "blas",
        title: "BLAS",
        doc: "A BLAS library for large matrix products on the CPU.",
        platforms: "Linux, Windows, FreeBSD, macOS, iOS, tvOS, visionOS",
        needs: "nothing on Apple systems; else a BLAS library with headers (OpenBLAS) and pkg-config",
        option: "GGML_BLAS",
        cmake: &[],
        defines: |target, options| {
            let vendor = blas_vendor(target, options);
            let mut defines = vec![("GGML_BLAS_VENDOR".to_owned(), blas_cmake_vendor(vendor).to_owned())];
            if let Some(root) = options.blas_path.as_deref().filter(|_| vendor != BlasVendor::Accelerate) {
                // Given, it spares upstream its call of pkg-config, which Windows does not have.
                defines.push(("BLAS_INCLUDE_DIRS".to_owned(), join(root, "include")));
                defines.push(("CMAKE_PREFIX_PATH".to_owned(), root.replace('\\', "/")));
            }
            defines
        },
        supported: |target| matches!(target.os, Os::Linux | Os::Windows | Os::FreeBsd) || target.is_apple(),
        conflicts: &[],
        archives: &["ggml-blas"],
        link: blas_link,
        preflight: &[Tool {
            program: "pkg-config",
            why: "feature `blas`: CMake asks it where the headers of the BLAS library are; that library is needed with it",
            install: &[
                ("Debian, Ubuntu", "apt-get install pkg-config libopenblas-dev"),
                ("Fedora", "dnf install pkgconf-pkg-config openblas-devel"),
                ("Arch", "pacman -S pkgconf openblas"),
                ("FreeBSD", "pkg install pkgconf openblas"),
                ("Windows", "unpack OpenBLAS's release and set OPENBLAS_PATH to its folder; no pkg-config then"),
            ],
            variable: "PKG_CONFIG",
            when: |target, _, options| {
                blas_vendor(target, options) != BlasVendor::Accelerate
                    && options.blas_path.is_none()
                    && options.cmake_define("BLAS_INCLUDE_DIRS").is_none()
            },
        }],
    },
    Backend {
        feature: "rpc",
        title: "RPC",
        doc: "Devices of other machines, over the network.",
        platforms: "all with sockets",
        needs: "nothing",
        option: "GGML_RPC",
        // RDMA is found or not found on the machine that builds, and then has to be linked.
        cmake: &[("GGML_RPC_RDMA", "OFF")],
        defines: no_defines,
        supported: |target| target.is_unix_like_elf() || target.is_apple() || target.is_windows(),
        conflicts: &[],
        archives: &["ggml-rpc"],
        link: |target, _| if target.is_windows() { vec![dylib("ws2_32")] } else { Vec::new() },
        preflight: &[],
    },
    Backend {
        feature: "openmp",
        title: "OpenMP",
        doc: "OpenMP threads in the CPU backend in place of ggml's own thread pool.",
        platforms: "Linux, Windows, Android, FreeBSD",
        needs: "the compiler's OpenMP run time",
        option: "GGML_OPENMP",
        // No download of LLVM's run time behind the user's back.
        cmake: &[("GGML_OPENMP_FETCH", "OFF")],
        defines: no_defines,
        supported: |target| matches!(target.os, Os::Linux | Os::Windows | Os::Android | Os::FreeBsd),
        conflicts: &[],
        archives: &[],
        link: openmp_link,
        preflight: &[],
    },
];

fn no_defines(_: &Target, _: &Options) -> Vec<(String, String)> {
    Vec::new()
}

fn dylib(name: &str) -> Link {
    Link::Dylib(name.to_owned())
}

fn fixed(name: &str) -> Link {
    Link::Static(name.to_owned())
}

fn framework(name: &str) -> Link {
    Link::Framework(name.to_owned())
}

/// CMake and the linkers take forward slashes everywhere.
fn join(root: &str, rest: &str) -> String {
    format!("{}/{rest}", root.replace('\\', "/").trim_end_matches('/'))
}

fn cuda_defines(target: &Target, options: &Options) -> Vec<(String, String)> {
    let archs = options.cuda_archs.clone().unwrap_or_else(|| DEFAULT_CUDA_ARCHS.to_owned());
    let mut defines = vec![("CMAKE_CUDA_ARCHITECTURES".to_owned(), archs)];
    if let Some(root) = &options.cuda_path {
        defines.push(("CUDAToolkit_ROOT".to_owned(), root.replace('\\', "/")));
        // Visual Studio's generator takes its own from the toolset.
        if !target.is_msvc() {
            defines.push(("CMAKE_CUDA_COMPILER".to_owned(), join(root, "bin/nvcc")));
        }
    }
    defines
}

fn cuda_link(target: &Target, options: &Options) -> Vec<Link> {
    let root = options.cuda_path.as_deref();
    let mut link = Vec::new();
    if target.is_windows() {
        // Import libraries only: there is no static cuBLAS and no culibos on Windows.
        link.extend(root.map(|root| Link::Search(join(root, "lib/x64"))));
        link.push(dylib("cublas"));
        link.push(if options.cuda_static { fixed("cudart_static") } else { dylib("cudart") });
    } else {
        let root = root.unwrap_or("/usr/local/cuda");
        // `stubs` holds a libcuda for machines without a driver.
        link.extend([Link::Search(join(root, "lib64")), Link::Search(join(root, "lib64/stubs"))]);
        if options.cuda_static {
            link.extend(["cublas_static", "cublasLt_static", "cudart_static", "culibos"].map(fixed));
            link.extend(["rt", "pthread", "dl"].map(dylib));
        } else {
            link.extend(["cublas", "cublasLt", "cudart"].map(dylib));
        }
    }
    // The virtual memory pool calls the driver directly.
    let no_vmm = options.cmake_define("GGML_CUDA_NO_VMM").is_some_and(is_on);
    if !no_vmm {
        link.push(dylib("cuda"));
    }
    link
}

/// Whether CMake takes a value for true.
fn is_on(value: &str) -> bool {
    ["1", "ON", "YES", "TRUE", "Y"].contains(&value.to_ascii_uppercase().as_str())
}

/// The BLAS library for a target.
pub fn blas_vendor(target: &Target, options: &Options) -> BlasVendor {
    let default = if target.is_apple() { BlasVendor::Accelerate } else { BlasVendor::OpenBlas };
    options.blas_vendor.unwrap_or(default)
}

/// As CMake's FindBLAS spells them.
fn blas_cmake_vendor(vendor: BlasVendor) -> &'static str {
    match vendor {
        BlasVendor::OpenBlas => "OpenBLAS",
        BlasVendor::Blis => "FLAME",
        // The single dynamic library, which chooses interface and threading at run time.
        BlasVendor::Mkl => "Intel10_64_dyn",
        BlasVendor::Aocl => "AOCL_mt",
        BlasVendor::Accelerate => "Apple",
        BlasVendor::FlexiBlas => "FlexiBLAS",
        BlasVendor::Generic => "Generic",
    }
}

fn blas_link(target: &Target, options: &Options) -> Vec<Link> {
    let library = match blas_vendor(target, options) {
        BlasVendor::Accelerate => return vec![framework("Accelerate")],
        BlasVendor::OpenBlas => "openblas",
        BlasVendor::Blis => "blis",
        BlasVendor::Mkl => "mkl_rt",
        BlasVendor::Aocl => "blis-mt",
        BlasVendor::FlexiBlas => "flexiblas",
        BlasVendor::Generic => "blas",
    };
    let mut link: Vec<Link> = options.blas_path.iter().map(|root| Link::Search(join(root, "lib"))).collect();
    link.push(dylib(library));
    link
}

fn openmp_link(target: &Target, options: &Options) -> Vec<Link> {
    let library = match options.openmp_lib {
        OpenMpLib::None => return Vec::new(),
        OpenMpLib::Gomp => "gomp",
        OpenMpLib::Omp => "omp",
        OpenMpLib::Iomp5 => "iomp5",
        // The objects themselves ask for Visual C++'s run time.
        OpenMpLib::Auto if target.is_msvc() => return Vec::new(),
        OpenMpLib::Auto => match (&target.os, &target.env) {
            (Os::Linux, _) | (Os::Windows, Env::Gnu) => "gomp",
            _ => "omp",
        },
    };
    // The NDK has the static one only.
    let alone = options.crt_static || target.os == Os::Android || (target.is_windows() && target.env == Env::Gnu);
    vec![if alone && !target.is_msvc() { fixed(library) } else { dylib(library) }]
}

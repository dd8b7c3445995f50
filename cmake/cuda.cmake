# Kernels and operators for CUDA devices: part of lra_ops where LibTorch has CUDA and nvcc is there; else
# the program computes on the CPU alone and says so.
#
# The machine code is made for compute capability 8.0 (Ampere), 9.0 (Hopper), and as PTX for later ones:
# CMAKE_CUDA_ARCHITECTURES (CUDAARCHS of tools/build) names others, 80 at least.
find_program(LRA_NVCC NAMES nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(NOT EXISTS ${TORCH_INSTALL_PREFIX}/lib/libtorch_cuda.so OR NOT LRA_NVCC)
  message(STATUS "GPU kernels: none (they need a LibTorch with CUDA, and nvcc)")
  return()
endif()
set(CMAKE_CUDA_COMPILER ${LRA_NVCC})
set(CMAKE_CUDA_ARCHITECTURES ${asked_cuda_architectures})
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
endif()
enable_language(CUDA)
# CMake 3.25 does not know what nvcc 13 calls the dialect.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
message(STATUS "GPU kernels: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, compute capabilities ${CMAKE_CUDA_ARCHITECTURES}")

# CUDA's runtime is the one that LibTorch loads: linking the toolkit's as well would bring a second.
file(GLOB_RECURSE cuda_kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/*_cuda.cu)
add_library(lra_kernels_cuda OBJECT ${cuda_kernels})
set_target_properties(lra_kernels_cuda PROPERTIES CUDA_RUNTIME_LIBRARY None)
target_compile_options(lra_kernels_cuda PRIVATE --expt-relaxed-constexpr -Xcompiler=-Wall)
target_include_directories(lra_kernels_cuda PRIVATE ${CMAKE_SOURCE_DIR}/src)

file(GLOB cuda_operators CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/cuda/*.cpp)
# Their functions are named forward and backward in each file, so they compile one by one.
set_source_files_properties(${cuda_operators} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_sources(lra_ops PRIVATE ${cuda_operators} $<TARGET_OBJECTS:lra_kernels_cuda>)
target_include_directories(lra_ops PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
set_target_properties(lra_ops PROPERTIES LINKER_LANGUAGE CXX CUDA_RUNTIME_LIBRARY None)

# LibTorch has NCCL, but neither its header nor those of CUDA's libraries, which its own headers include: pip installs
# both beside torch. No other nccl.h fits: objects of c10d's classes, whose sizes depend on it, are made here and in
# LibTorch.
find_path(NCCL_INCLUDE nccl.h PATHS ${TORCH_INSTALL_PREFIX}/../nvidia/nccl/include NO_DEFAULT_PATH)
find_path(CUSPARSE_INCLUDE cusparse.h
  HINTS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} ${TORCH_INSTALL_PREFIX}/../nvidia/cu13/include)
if(NCCL_INCLUDE AND CUSPARSE_INCLUDE)
  set(nccl_options ${NCCL_INCLUDE} ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} ${CUSPARSE_INCLUDE})
  list(TRANSFORM nccl_options PREPEND -isystem)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/training/ranks/nccl.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON
    COMPILE_DEFINITIONS "LRA_NCCL;USE_C10D_NCCL" COMPILE_OPTIONS "${nccl_options}")
  message(STATUS "NCCL: ${NCCL_INCLUDE}/nccl.h")
else()
  message(STATUS "NCCL: none (it needs the headers that pip installs beside torch)")
endif()

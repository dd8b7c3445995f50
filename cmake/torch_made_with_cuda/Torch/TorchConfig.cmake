# Finds a LibTorch that was made with CUDA, whether or not the CUDA toolkit is there.
#
# LibTorch's own TorchConfig.cmake stops when it finds no toolkit (and looks for it only beside the
# first nvcc of PATH), although nothing of ours that g++ compiles needs it, and the wheel brings the
# libraries that it needs to run. CMakeLists.txt puts this folder in front of CMAKE_PREFIX_PATH;
# LibTorch itself is found in the rest of it.
foreach(prefix IN LISTS CMAKE_PREFIX_PATH)
  if(EXISTS "${prefix}/../../lib/libtorch_cpu.so")
    get_filename_component(TORCH_INSTALL_PREFIX "${prefix}/../.." ABSOLUTE)
    break()
  endif()
endforeach()
if(NOT TORCH_INSTALL_PREFIX)
  set(Torch_FOUND FALSE)
  set(Torch_NOT_FOUND_MESSAGE "no folder of CMAKE_PREFIX_PATH belongs to a LibTorch")
  return()
endif()

# libtorch.so and the CUDA libraries register operators when they are loaded; no symbol of theirs is
# called by name, so the linker must be kept from leaving them out.
set(libraries c10 torch_cpu)
foreach(name c10_cuda torch_cuda)
  if(EXISTS "${TORCH_INSTALL_PREFIX}/lib/lib${name}.so")
    list(APPEND libraries ${name})
  endif()
endforeach()
list(TRANSFORM libraries REPLACE "(.+)" "${TORCH_INSTALL_PREFIX}/lib/lib\\1.so")

if(NOT TARGET torch)
  add_library(torch SHARED IMPORTED)
  set_target_properties(torch PROPERTIES
    IMPORTED_LOCATION "${TORCH_INSTALL_PREFIX}/lib/libtorch.so"
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO"
    INTERFACE_INCLUDE_DIRECTORIES
      "${TORCH_INSTALL_PREFIX}/include;${TORCH_INSTALL_PREFIX}/include/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES "-Wl,--no-as-needed;${libraries};-Wl,--as-needed")
endif()
set(TORCH_LIBRARIES torch)
set(TORCH_INCLUDE_DIRS
  "${TORCH_INSTALL_PREFIX}/include" "${TORCH_INSTALL_PREFIX}/include/torch/csrc/api/include")
set(Torch_FOUND TRUE)

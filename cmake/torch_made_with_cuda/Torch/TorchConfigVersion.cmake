# The version is that of the LibTorch found in the rest of CMAKE_PREFIX_PATH.
foreach(prefix IN LISTS CMAKE_PREFIX_PATH)
  if(EXISTS "${prefix}/../../lib/libtorch_cpu.so")
    include("${prefix}/Torch/TorchConfigVersion.cmake")
    break()
  endif()
endforeach()

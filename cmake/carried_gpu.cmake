# tools/carry --gpu packs the program and test_gpu, as they lie in a build folder, and beside them the small
# libraries that a bare machine may lack. `torch` beside them is a link to the torch of that machine, made by
# tools/use_torch.py.
#
# The paths are of the older kind (RPATH), as those of torch's own libraries: they come before LD_LIBRARY_PATH, which
# may name another torch, and the libraries that a library needs are looked for there, too.
foreach(target lra lra_ops lra_python test_gpu)
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
endforeach()
set_target_properties(lra lra_ops lra_python PROPERTIES INSTALL_RPATH "$ORIGIN/torch/lib;$ORIGIN")
set_target_properties(test_gpu PROPERTIES INSTALL_RPATH "$ORIGIN/../../torch/lib;$ORIGIN/../..")
target_sources(test_gpu PRIVATE $<TARGET_OBJECTS:lra_older_symbols>)
target_link_options(test_gpu PRIVATE ${newer_symbols})

install(TARGETS lra lra_ops lra_python RUNTIME_DEPENDENCY_SET small_libraries
  RUNTIME DESTINATION build COMPONENT gpu LIBRARY DESTINATION build COMPONENT gpu)
install(TARGETS test_gpu RUNTIME_DEPENDENCY_SET small_libraries
  RUNTIME DESTINATION build/tests/simulated_cuda COMPONENT gpu)

# LibTorch is the one there, and where it is, the libraries of C and C++ are, which must fit that system.
string(REGEX REPLACE "([][+.*()^$?|])" "\\\\\\1" torch_pattern "${TORCH_INSTALL_PREFIX}")
install(RUNTIME_DEPENDENCY_SET small_libraries PRE_EXCLUDE_REGEXES "^lib(c|m|stdc\\+\\+|gcc_s)\\.so" "^ld-linux"
  POST_EXCLUDE_REGEXES "^${torch_pattern}/lib/" LIBRARY DESTINATION build COMPONENT gpu)

# Content of the Python package besides python/lra: a folder for the minor version of torch that this is
# built against, and the presets. RUNPATHs name the folder itself and torch next to the package.
string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch_minor ${Torch_VERSION})
set(python_folder lra/_torch${torch_minor})
set_target_properties(lra lra_ops lra_python PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../../torch/lib")
install(TARGETS lra lra_ops lra_python COMPONENT python
  RUNTIME DESTINATION ${python_folder} LIBRARY DESTINATION ${python_folder})
install(DIRECTORY configs DESTINATION lra COMPONENT python)

# With older versions of a few symbols a program made on Debian 12 also runs on RHEL 9 and its relatives (manylinux_2_34).
if(LRA_PORTABLE)
  add_library(lra_older_symbols OBJECT cmake/older_symbols.cpp)
  set(newer_symbols hypot _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE)
  list(TRANSFORM newer_symbols PREPEND "LINKER:--wrap=")
  foreach(target lra lra_ops lra_python)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:lra_older_symbols>)
    target_link_options(${target} PRIVATE ${newer_symbols})
  endforeach()
endif()

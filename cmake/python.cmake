# Content of the Python package besides python/lra: a folder for the minor version of torch that this is
# built against, and the presets. RUNPATHs name the folder itself and torch next to the package.
string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch_minor ${Torch_VERSION})
set(python_folder lra/_torch${torch_minor})
set_target_properties(lra lra_ops lra_python PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../../torch/lib")
install(TARGETS lra lra_ops lra_python COMPONENT python
  RUNTIME DESTINATION ${python_folder} LIBRARY DESTINATION ${python_folder})
install(DIRECTORY configs DESTINATION lra COMPONENT python)

# Writes OUTPUT: a C++ file with shipped_configs() of src/training/settings/shipped_configs.h, the SHA-256 of each of FILES,
# which are named from the folder FOLDER.
set(text "#include \"training/settings/shipped_configs.h\"\n\nnamespace lra::training {\n")
string(APPEND text "std::span<const ShippedConfig> shipped_configs() {\n  static constexpr ShippedConfig kAll[] = {\n")
foreach(file IN LISTS FILES)
  file(SHA256 ${file} digest)
  file(RELATIVE_PATH name ${FOLDER} ${file})
  string(APPEND text "      {\"${name}\", \"${digest}\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${text}  };\n  return kAll;\n}\n}  // namespace lra::training\n")

# Writes OUTPUT: a C++ file whose functions of src/report/formats/html_parts.h return FILES, in their order there.
set(functions page_style page_script)
set(text "#include \"report/formats/html_parts.h\"\n\nnamespace lra::report {\n")
foreach(function file IN ZIP_LISTS functions FILES)
  file(READ ${file} content)
  string(APPEND text "std::string_view ${function}() {\n  return R\"page_file(${content})page_file\";\n}\n")
endforeach()
file(WRITE ${OUTPUT} "${text}}  // namespace lra::report\n")

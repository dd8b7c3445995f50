# Writes OUTPUT, a header with the git revision of SOURCE and a hash of what is not committed, only
# when it changes. Runs at every build: cmake -D SOURCE=... -D OUTPUT=... -P git_revision.cmake
set(revision "unknown")
set(dirty "")

function(git result)
  execute_process(COMMAND "${GIT}" --no-optional-locks -C "${SOURCE}" ${ARGN}
    OUTPUT_VARIABLE text ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    set(text "")
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

find_program(GIT git)
if(GIT)
  # A tarball unpacked inside some other repository has no revision of its own.
  git(top rev-parse --show-toplevel)
  get_filename_component(source_path "${SOURCE}" REALPATH)
  if(top STREQUAL source_path)
    git(revision rev-parse --verify HEAD)
    # Names of untracked files are hashed, not what is in them.
    git(status status --porcelain)
    if(status)
      git(changes diff HEAD --binary --no-ext-diff --no-color)
      string(SHA1 dirty "${status}\n${changes}")
    endif()
  endif()
endif()
if(NOT revision MATCHES "^[0-9a-f]+$")
  set(revision "unknown")
endif()

set(content "#define LRA_GIT_REVISION \"${revision}\"\n#define LRA_GIT_DIRTY \"${dirty}\"\n")
set(previous "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" previous)
endif()
if(NOT previous STREQUAL content)
  file(WRITE "${OUTPUT}" "${content}")
endif()

// Handles a mapped file that can no longer be read (mapped_file.h): the kernel
// says so with SIGBUS, at any access.
#pragma once

namespace lra {

// Makes such an access end the process with exit code 74 and one line; any other SIGBUS keeps its
// default action.
void report_unreadable_maps();

}  // namespace lra

// Handles a mapped file that can no longer be read (mapped_file.h): the kernel
// says so with SIGBUS, at any access.
#pragma once

namespace lra {

// From now on such an access ends the process with exit code 74 and one line that names the file;
// any other SIGBUS ends it by the default action, as before.
void report_unreadable_maps();

}  // namespace lra

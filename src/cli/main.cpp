#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "cli/program.h"

// Everything of ours is closed and joined when the command returns. LibTorch's destructors, which
// take a third of a short command's time, are left out.
int main(int argc, char** argv) {
  const int code = lra::cli::run_command(argc, argv);
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  _exit(code);
}

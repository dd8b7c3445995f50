#include "cli/program.h"

int main(int argc, char** argv) { return lra::cli::run_command(argc, argv); }

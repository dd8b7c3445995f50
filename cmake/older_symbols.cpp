// Calls of symbols that became newer versions in glibc 2.35 and in the libstdc++ of GCC 12 go to
// the versions before them, which do the same: the linker's --wrap sends them here. Only with
// LRA_PORTABLE (cmake/python.cmake).
#include <condition_variable>
#include <mutex>

#ifdef __x86_64__
#define LRA_FIRST_GLIBC "GLIBC_2.2.5"
#else
#define LRA_FIRST_GLIBC "GLIBC_2.17"
#endif

#define LRA_WAIT "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"

extern "C" {

double lra_older_hypot(double x, double y);
void lra_older_wait(std::condition_variable*, std::unique_lock<std::mutex>&);

__asm__(".symver lra_older_hypot, hypot@" LRA_FIRST_GLIBC);
__asm__(".symver lra_older_wait, " LRA_WAIT "@GLIBCXX_3.4.11");

double __wrap_hypot(double x, double y) { return lra_older_hypot(x, y); }

void wrapped_wait(std::condition_variable* self,
                  std::unique_lock<std::mutex>& lock) __asm__("__wrap_" LRA_WAIT);
void wrapped_wait(std::condition_variable* self, std::unique_lock<std::mutex>& lock) {
  lra_older_wait(self, lock);
}

}  // extern "C"

// A file of another user in a folder, with the name of a library.
#include <unistd.h>

__attribute__((constructor)) static void run() {
  constexpr char kText[] = "code of the current folder\n";
  (void)!write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(66);
}

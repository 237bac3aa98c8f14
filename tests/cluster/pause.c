// The process of a pod's sandbox: holds the namespaces and reaps orphans until it is told to end.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void Reap(int signal) {
  (void)signal;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}

static void End(int signal) {
  (void)signal;
  _exit(0);
}

int main(void) {
  signal(SIGCHLD, Reap);
  signal(SIGINT, End);
  signal(SIGTERM, End);
  for (;;) pause();
}

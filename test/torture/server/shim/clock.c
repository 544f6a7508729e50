/* Moves the wall clock of the process that it is loaded into. Redis tells the
   time by gettimeofday and clock_gettime(CLOCK_REALTIME); its monotonic clock
   stays as it is. The offset, in microseconds, is read from a file that the rig
   has mapped as well; by how much this clock differs from the others', from the
   environment. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *offset;
static long long differs;

__attribute__((constructor)) static void map_offset(void) {
  const char *path = getenv("TORTURE_CLOCK"), *by = getenv("TORTURE_CLOCK_DIFFERS");
  if (by) differs = atoll(by);
  int fd = path ? open(path, O_RDONLY) : -1;
  if (fd < 0) return;
  void *page = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
  if (page != MAP_FAILED) offset = page;
  close(fd);
}

static int moved(struct timespec *ts) {
  if (syscall(SYS_clock_gettime, CLOCK_REALTIME, ts)) return -1;
  long long ns = (long long)ts->tv_sec * 1000000000 + ts->tv_nsec + ((offset ? *offset : 0) + differs) * 1000;
  ts->tv_sec = ns / 1000000000;
  ts->tv_nsec = ns % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *tv, void *tz) {
  (void)tz;
  struct timespec ts;
  if (moved(&ts)) return -1;
  tv->tv_sec = ts.tv_sec;
  tv->tv_usec = ts.tv_nsec / 1000;
  return 0;
}

int clock_gettime(clockid_t id, struct timespec *ts) {
  if (id == CLOCK_REALTIME) return moved(ts);
  return syscall(SYS_clock_gettime, id, ts);
}

time_t time(time_t *out) {
  struct timespec ts;
  if (moved(&ts)) return -1;
  if (out) *out = ts.tv_sec;
  return ts.tv_sec;
}

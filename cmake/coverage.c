/*
 * Coverage: keeps libgcov's complaints out of what a program prints.
 *
 * Linked into every program of `make coverage`. A program in a sandbox, or of another user, may not
 * write its counts, and libgcov prints a line for each source file then: into a job's log, or into
 * a pipe that nobody reads, where the program hangs. libgcov writes in a destructor of priority 100;
 * this one comes just before it.
 */
#include <fcntl.h>
#include <unistd.h>

__attribute__((destructor(101))) static void silence_libgcov(void)
{
    const int null_fd = open("/dev/null", O_WRONLY);
    if (null_fd >= 0)
        dup2(null_fd, STDERR_FILENO);
}

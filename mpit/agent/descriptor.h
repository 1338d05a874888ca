/*
 * descriptor.h - descriptors made and closed by the kernel's calls, not by the C library's functions.
 *
 * In a program compiled with ThreadSanitizer its runtime watches those functions, and keeps what it knows of a
 * descriptor under its number. In the table of the agent's thread (connection.h) a number is another descriptor than in
 * the program's: the runtime would forget which of the program's threads have met at a pipe, and report races that
 * aren't any. Any thread, async-signal-safe.
 */
#ifndef MPIT_DESCRIPTOR_H
#define MPIT_DESCRIPTOR_H

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int descriptor_open(const char *path, int flags)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC);
}

static inline int descriptor_socket(int domain, int type)
{
	return (int)syscall(SYS_socket, domain, type | SOCK_CLOEXEC, 0);
}

static inline int descriptor_connect(int fd, const void *address, socklen_t length)
{
	return (int)syscall(SYS_connect, fd, address, length);
}

static inline void descriptor_close(int fd)
{
	syscall(SYS_close, fd);
}

#endif

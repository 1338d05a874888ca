/* A library with BYTES of static TLS of its own: what the dynamic linker must find room for in threads that run
 * already. */
static __thread volatile char room[BYTES] __attribute__((tls_model("initial-exec")));

int touch(void)
{
    room[BYTES - 1]++;
    return room[BYTES - 1];
}

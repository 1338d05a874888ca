/* site_test.c - what the site's administrator says of jobs, in files and texts of the test's. */
#define _GNU_SOURCE
#include "site.h"
#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct site_rank lammps = { .program = "/opt/lammps/bin/lmp_mpi", .user = 1005, .job = "4711" };

static bool parse(const char *text, const struct site_rank *rank, struct site_says *says, char why[160])
{
	char copy[SITE_BYTES + 1];

	snprintf(copy, sizeof copy, "%s", text);
	return site_parse(copy, rank, says, why, 160);
}

void test_what_the_site_says(void)
{
	static const struct {
		const char *text;
		bool observe;
		const char *calls;
	} cases[] = {
		{ "", true, "" },
		{ "\n# nothing\n\t \r\n", true, "" },
		{ "not-program lmp_mpi", false, "" },
		{ "not-program lmp*\n", false, "" },
		{ "not-program lmp # the serial one", true, "" },
		{ "not-program /opt/*", false, "" },
		{ "not-program bin/lmp_mpi", true, "" },
		{ "not-program */bin/lmp_mpi", false, "" },
		{ "not-user 1005", false, "" },
		{ "not-user 100\nnot-user 10050", true, "" },
		{ "not-user 1005\nnot-user 7", false, "" },
		{ "share 100", true, "" },
		{ "share 0%", false, "" },
		{ "  calls\tlight\t\r\nshare 100%\r\n", true, "light" },
		{ "calls 0\nnot-program other", true, "0" },
		{ "calls sizes,peers", true, "sizes,peers" },
	};
	struct site_rank unknown = lammps, asked = lammps;
	struct site_says says;
	char why[160];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK(parse(cases[i].text, &lammps, &says, why));
		CHECK(says.observe == cases[i].observe && strcmp(says.calls, cases[i].calls) == 0);
	}
	/* A program that isn't known may be one that is left out. */
	unknown.program = NULL;
	CHECK(parse("not-program other", &unknown, &says, why) && !says.observe);
	/* Who has asked is in every share; what is left out stays so. */
	asked.asked = true;
	CHECK(parse("share 0", &asked, &says, why) && says.observe);
	CHECK(parse("not-user 1005", &asked, &says, why) && !says.observe);
}

static void put(const char *file, const void *text, size_t length, mode_t mode)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, text, length) == (ssize_t)length && fchmod(fd, mode) == 0);
	close(fd);
}

void test_a_wrong_file_of_the_sites(void)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "not-programm lmp", "line 1: not-programm is not one of not-program, not-user, share and calls" },
		{ "share 100\nnot-user ada", "line 2: not-user is followed by no user's number" },
		{ "not-user -1", "line 1: not-user is followed by no user's number" },
		{ "not-user 4294967296", "line 1: not-user is followed by no user's number" },
		{ "share 101", "line 1: share is followed by no whole number of per cent" },
		{ "share 10%%", "line 1: share is followed by no whole number of per cent" },
		{ "share", "line 1: share has not one value" },
		{ "not-program a b", "line 1: not-program has not one value" },
		{ "calls all", "line 1: calls is none of 0, 1, light, sizes, peers and sizes,peers" },
	};
	static char large[SITE_BYTES + 1];
	char file[] = "/tmp/mpit-site-XXXXXX", why[160];
	struct site_says says;
	int fd;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CHECK(!parse(cases[i].text, &lammps, &says, why) && !says.observe);
		CHECK(strcmp(why, cases[i].why) == 0);
	}
	CHECK(site_read("/no/such/file", &lammps, &says, why, sizeof why) && says.observe);
	CHECK(!site_read("/tmp", &lammps, &says, why, sizeof why) && !says.observe);

	fd = mkstemp(file);
	CHECK(fd >= 0);
	close(fd);
	put(file, "share 100\n", 10, 0644);
	if (geteuid() != 0) {
		/* It is somebody's who is not root. */
		CHECK(!site_read(file, &lammps, &says, why, sizeof why) && !says.observe);
		unlink(file);
		return;
	}
	CHECK(site_read(file, &lammps, &says, why, sizeof why) && says.observe);
	put(file, "share 100\n", 10, 0646);
	CHECK(!site_read(file, &lammps, &says, why, sizeof why) && !says.observe);
	CHECK(strcmp(why, "is not a file that root alone can write") == 0);
	put(file, "share 100\n", 10, 0664);
	CHECK(!site_read(file, &lammps, &says, why, sizeof why));
	put(file, "share 100\n\0\n", 12, 0644);
	CHECK(!site_read(file, &lammps, &says, why, sizeof why));
	memset(large, '\n', sizeof large);
	put(file, large, SITE_BYTES, 0644);
	CHECK(site_read(file, &lammps, &says, why, sizeof why) && says.observe);
	put(file, large, sizeof large, 0644);
	CHECK(!site_read(file, &lammps, &says, why, sizeof why));
	put(file, "", 0, 0644);
	CHECK(chown(file, 1, 0) != 0 || !site_read(file, &lammps, &says, why, sizeof why));
	unlink(file);
}

void test_shares_of_jobs(void)
{
	struct site_rank rank = lammps;
	unsigned observed = 0;
	char job[16], why[160];
	struct site_says says;

	for (unsigned i = 0; i < 10000; i++) {
		bool tenth;

		snprintf(job, sizeof job, "%u", 4000000 + i);
		rank.job = job;
		CHECK(parse("share 10%", &rank, &says, why));
		tenth = says.observe;
		observed += tenth;
		/* The same in each rank, and a larger share has all of the smaller one's. */
		CHECK(parse("share 10%", &rank, &says, why) && says.observe == tenth);
		CHECK(parse("share 30%", &rank, &says, why) && (says.observe || !tenth));
	}
	CHECK(observed > 900 && observed < 1100);
	rank.job = NULL;
	CHECK(parse("share 99%", &rank, &says, why) && !says.observe);
	CHECK(parse("share 100%", &rank, &says, why) && says.observe);
}

/* Random texts of the parser's own words: it ends, stays in its memory (the sanitizers look), and what is wrong
 * observes nothing. */
void test_any_text_is_a_file_of_the_sites(void)
{
	static const char *const pieces[] = { "not-program", "not-user", "share", "calls", " ", "\t", "\n", "\r", "#", "%", "*",
					      "[", "]", "\\", "/", "0", "1", "99", "4294967295", "light", ",", "\xff", "-" };
	struct site_says says;
	unsigned seed = 1;
	char why[160];

	for (unsigned round = 0; round < 20000; round++) {
		char *text = calloc(1, SITE_BYTES + 1); /* of its own, so that a byte too far is seen */
		size_t used = 0;

		CHECK(text != NULL);
		for (unsigned n = (unsigned)rand_r(&seed) % 40; n > 0; n--) {
			const char *piece = pieces[(unsigned)rand_r(&seed) % (sizeof pieces / sizeof *pieces)];

			memcpy(text + used, piece, strlen(piece) + 1);
			used += strlen(piece);
		}
		text = realloc(text, used + 1);
		CHECK(text != NULL);
		if (!site_parse(text, &lammps, &says, why, sizeof why))
			CHECK(!says.observe && says.calls[0] == '\0' && strncmp(why, "line ", 5) == 0);
		free(text);
	}
}

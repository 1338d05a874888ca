/* conversation_test.c - the gate, the end, and what the thread and the exporter say to each other, in a passive rank
 * too. */
#define _GNU_SOURCE
#include "filter.h"
#include "gate.h"
#include "last.h"
#include "now.h"
#include "test.h"
#include "wake.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the gate ---- */

static _Atomic int entered;

static void *program_thread(void *unused)
{
	(void)unused;
	CHECK(gate_enter());
	atomic_store(&entered, 1);
	gate_leave();
	return NULL;
}

void test_gate(void)
{
	pthread_t thread;
	uint64_t before = gate_waits().count;

	CHECK(gate_try());
	CHECK(!gate_enter()); /* not recursive: refused, not a deadlock */
	CHECK(pthread_create(&thread, NULL, program_thread, NULL) == 0);
	while (!gate_wanted())
		usleep(100);
	CHECK(atomic_load(&entered) == 0);
	gate_leave();
	pthread_join(thread, NULL);
	CHECK(atomic_load(&entered) == 1);
	CHECK(gate_waits().count == before + 1 && gate_waits().longest_ns > 0);
	CHECK(agent_state() == AGENT_IDLE);
}

static _Atomic int going_on;

static void go_on(int signal)
{
	(void)signal;
	atomic_store(&going_on, 1);
}

/* A debugger, or SIGSTOP, stops the agent's thread in the gate and a program's thread in front of it for longer than
 * gate_enter waits: neither has had that time. */
void test_the_gate_does_not_count_time_that_nobody_has_run(void)
{
	struct sigaction action = { .sa_handler = go_on };
	pthread_t thread;
	pid_t child;
	int status;

	atomic_store(&entered, 0);
	CHECK(sigaction(SIGCONT, &action, NULL) == 0);
	CHECK(gate_try());
	CHECK(pthread_create(&thread, NULL, program_thread, NULL) == 0);
	while (!gate_wanted())
		usleep(100);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		/* Only what a handler may do: the thread sanitizer, too, wants that of a child of several threads. */
		const struct timespec longer = { .tv_sec = GATE_PATIENCE_NS / 1000000000u + 1 };

		kill(getppid(), SIGSTOP);
		nanosleep(&longer, NULL);
		kill(getppid(), SIGCONT);
		_exit(0);
	}
	while (!atomic_load(&going_on))
		usleep(100);
	usleep(200000); /* so that it is the other thread which goes on first, and looks at the clock */
	gate_leave();
	CHECK(pthread_join(thread, NULL) == 0); /* which has checked that it could enter */
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	signal(SIGCONT, SIG_DFL);
	CHECK(agent_state() == AGENT_IDLE);
}

/* ---- the end ---- */

static void *sleeper(void *unused)
{
	(void)unused;
	wake_await(FOREVER);
	return NULL;
}

void test_the_end_wakes_who_sleeps(void)
{
	pthread_t thread;
	uint64_t deadline;

	wake_prepare();
	deadline = monotonic_ns() + 1000000u;
	wake_await(deadline);
	CHECK(monotonic_ns() >= deadline);
	CHECK(pthread_create(&thread, NULL, sleeper, NULL) == 0);
	wake_threads();
	wake_threads(); /* it may be gone by now */
	CHECK(pthread_join(thread, NULL) == 0);
	wake_await(FOREVER);
}

/* A filter that allows everything, for the calling thread alone. */
static bool add_filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog program = { .len = 1, .filter = &allow };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/* The calling thread alone: without the C library, which asks all of them to. */
static bool join_groups(void)
{
	gid_t groups[1000];

	for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
		groups[i] = 1000000 + (gid_t)i;
	return syscall(SYS_setgroups, sizeof groups / sizeof groups[0], groups) == 0;
}

static void *filtered_thread(void *listening)
{
	filter_begin();
	CHECK(!filter_came());
	if (!add_filter()) {
		fprintf(stderr, "this system takes no filter of system calls: not tested\n");
		return NULL;
	}
	CHECK(filter_came());
	CHECK(gate_enter());
	CHECK(last_send(&link_of_rank.paths, &identity, &session, END_EXIT).c.fd < 0);
	gate_leave();
	/* No connection has been made. */
	CHECK(poll(&(struct pollfd){ .fd = *(int *)listening, .events = POLLIN }, 1, 0) == 0);
	filter_begin();
	CHECK(!filter_came()); /* a container's */
	CHECK(add_filter() && filter_came());
	/* The kernel tells them behind the groups, of which a user may have many. */
	if (!join_groups())
		fprintf(stderr, "this user may not join groups: not tested\n");
	filter_begin();
	CHECK(!filter_came());
	CHECK(add_filter() && filter_came());
	return NULL;
}

/* The thread of the agent, which has connected already, is not the one that has the filter. */
void test_filters_that_come_are_noticed(void)
{
	pthread_t thread;
	int listening, fd;

	fake_reset();
	open_session("", 10);
	fd = open_conversation(&listening);
	CHECK(pthread_create(&thread, NULL, filtered_thread, &listening) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	filter_begin();
	CHECK(agent_move(AGENT_RUNNING, AGENT_IDLE));
	close(fd);
	end_conversation(listening);
}

/* A conversation in which the exporter has asked for the last sample, and knows that the agent has heard it. */
static int ask_for_the_last(int *listening)
{
	const uint64_t unseen[3] = { 0 };
	int fd;

	fake_reset();
	variable("mood", LEVEL, TYPE_INT, 4, BIND_NONE, 1)->value[0][0].i = 7;
	open_session("", 10);
	last_prepare();
	fd = open_conversation(listening);
	request(fd, REQUEST_FINAL, 0, NULL, 0);
	request(fd, REQUEST_SAMPLE, 1, unseen, 3);
	CHECK(expect_sample(fd, 1, SAMPLE_FRESH, 2) == 7); /* VARIABLES, LAYOUT: nothing has come for FINAL */
	fake_variables[0].value[0][0].i = 8;
	CHECK(gate_enter());
	CHECK(agent_move(AGENT_RUNNING, AGENT_FINAL));
	CHECK(session_sample(&session, NULL));
	gate_leave();
	return fd;
}

static void end_after_the_last(int listening)
{
	CHECK(agent_move(AGENT_FINAL, AGENT_IDLE));
	end_conversation(listening);
}

static struct farewell say_last(enum end_reason end)
{
	struct farewell f;

	CHECK(gate_enter());
	f = last_send(&link_of_rank.paths, &identity, &session, end);
	link_stop();
	gate_leave();
	return f;
}

/* With time for a thread that is late on a busy machine. */
void test_the_last_sample_goes_over_the_connection_that_stands(void)
{
	const enum end_reason ends[] = { END_FINALIZE, END_EXIT };

	setenv("MPIT_AGENT_FINAL_WAIT", "60000", 1);
	for (size_t i = 0; i < 2; i++) {
		int listening, fd = ask_for_the_last(&listening);
		struct farewell f = say_last(ends[i]);

		CHECK(f.c.fd < 0 && f.handed_over);
		CHECK(expect_sample(fd, 0, SAMPLE_FINAL, 2) == 8);
		CHECK(poll(&(struct pollfd){ .fd = listening, .events = POLLIN }, 1, 0) == 0); /* there is no other one */
		close(fd);
		last_await(&f);
		end_after_the_last(listening);
	}
	unsetenv("MPIT_AGENT_FINAL_WAIT");
	last_prepare();
}

void test_a_connection_that_stands_no_longer_takes_no_last_sample(void)
{
	int listening, final, fd = ask_for_the_last(&listening);

	close(fd); /* the agent's thread may have noticed that, or not */
	say_last(END_FINALIZE);
	final = accept(listening, NULL, NULL);
	expect_hello(final, CONNECTION_FINAL);
	CHECK(expect_sample(final, 0, SAMPLE_FINAL, 2) == 8);
	close(final);
	end_after_the_last(listening);
}

/* A program that leaves main by pthread_exit ends with the last of the agent's threads. */
void test_an_exporter_that_reads_nothing_keeps_no_thread(void)
{
	const uint64_t unseen[3] = { 0 };
	struct wire w = { 0 };
	uint64_t ended;
	int listening, fd;

	fake_reset();
	open_session("", 10);
	fd = open_conversation(&listening);
	wire_begin(&w, REQUEST_SAMPLE, 1);
	wire_words(&w, unseen, 3);
	wire_end(&w);
	/* Until it takes no more requests, for its answers are not taken. */
	while (poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 500) == 1)
		send(fd, w.bytes, w.length, MSG_DONTWAIT);
	CHECK(agent_move(AGENT_RUNNING, AGENT_IDLE));
	ended = monotonic_ns();
	link_stop();
	end_conversation(listening);
	CHECK(monotonic_ns() - ended < 8000000000u); /* of the ten seconds that it has while the rank lives */
	close(fd);
	wire_free(&w);
}

void test_giving_up_ends_the_threads(void)
{
	int listening, fd;

	fake_reset();
	open_session("", 10);
	fd = open_conversation(&listening);
	agent_give_up("test");
	end_conversation(listening); /* it waits for them; the exporter asks nothing and stays */
	close(fd);
	CHECK(agent_move(AGENT_OFF, AGENT_IDLE));
}

void test_a_passive_rank_is_read_by_its_program_alone(void)
{
	const uint64_t unseen[3] = { 0 }, second_only[3] = { 0, 1, 2 };
	int listening, fd, reads;

	fake_reset();
	variable("a", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 5;
	variable("b", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 6;
	open_session("", 10);
	CHECK(sample_with(NULL));
	reads = fake_reads;
	listening = begin_conversation(true);
	fd = accept(listening, NULL, NULL);
	expect_hello(fd, CONNECTION_STAYS);
	request(fd, REQUEST_SAMPLE, 1, unseen, 3);
	CHECK(expect_sample(fd, 1, SAMPLE_PASSIVE, 2) == 5);
	request(fd, REQUEST_SELECT, 2, second_only, 3);
	request(fd, REQUEST_SAMPLE, 3, unseen, 3);
	/* The values read before are not those that are selected now. */
	CHECK(sample_statistic(fd, 3, SAMPLE_BUSY, STATISTIC_BUSY) == 1);
	request(fd, REQUEST_CVARS, 4, unseen, 1);
	free(next_frame(fd).words);
	CHECK(fake_reads == reads);
	CHECK(gate_enter());
	CHECK(sample_with(NULL)); /* the program's next call */
	gate_leave();
	request(fd, REQUEST_SAMPLE, 5, unseen, 3);
	CHECK(expect_sample(fd, 5, SAMPLE_PASSIVE, 2) == 6);
	request(fd, REQUEST_SAMPLE, 6, unseen, 3);
	CHECK(sample_statistic(fd, 6, SAMPLE_PASSIVE, STATISTIC_BUSY) == 1);
	CHECK(agent_move(AGENT_RUNNING, AGENT_IDLE));
	close(fd);
	end_conversation(listening);
}

/* Of a catalogue of two: the flags and the state of a variable as VARIABLES says them. */
static uint64_t told(int fd, uint32_t sequence, uint64_t variable, uint64_t *flags)
{
	const uint64_t unseen[3] = { 0 };
	uint64_t state = 99;
	struct frame f;

	request(fd, REQUEST_SAMPLE, sequence, unseen, 3);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_VARIABLES);
	take(&f);
	for (uint64_t n = take(&f); n > 0; n--) {
		uint64_t words = take(&f), *record = f.words + f.at;

		if (record[0] == variable) {
			*flags = record[7];
			state = record[9];
		}
		f.at += words;
	}
	free(f.words);
	do {
		f = next_frame(fd);
		free(f.words);
	} while (f.header.type != FRAME_SAMPLE);
	return state;
}

void test_a_request_to_open(void)
{
	const uint64_t both[2] = { 1, 3 }, all[4] = { 1, 2, 3, 0 }, cut[1] = { 1000 }, unseen[3] = { 0 };
	uint64_t flags = 0;
	int listening, fd;

	for (int passive = 0; passive < 2; passive++) {
		fake_reset();
		variable("cheap", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
		variable("costly_sends", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 7;
		open_session("", 10);
		CHECK(sample_with(NULL));
		listening = begin_conversation(passive);
		fd = accept(listening, NULL, NULL);
		expect_hello(fd, CONNECTION_STAYS);
		CHECK(told(fd, 1, 0, &flags) == VARIABLE_OPEN && (flags & 16) == 0);
		CHECK(told(fd, 2, 1, &flags) == VARIABLE_ON_REQUEST && (flags & 16) != 0);
		if (!passive)
			request(fd, REQUEST_SELECT, 3, all, 4);
		/* Says more words than it has: those of the request before it are none of its. */
		request(fd, REQUEST_OPEN, 3, cut, 1);
		request(fd, REQUEST_OPEN, 4, NULL, 0);
		CHECK(told(fd, 5, 1, &flags) == VARIABLE_ON_REQUEST);
		request(fd, REQUEST_OPEN, 6, both, 2);
		if (passive) {
			request(fd, REQUEST_SAMPLE, 7, unseen, 3);
			expect_sample(fd, 7, SAMPLE_PASSIVE, 2);
			CHECK(fake_started == 1);
			CHECK(gate_enter());
			CHECK(sample_with(NULL)); /* the program's next call */
			gate_leave();
		}
		CHECK(told(fd, 8, 1, &flags) == VARIABLE_OPEN && (flags & 16) != 0);
		CHECK(fake_started == 2);
		CHECK(agent_move(AGENT_RUNNING, AGENT_IDLE));
		close(fd);
		end_conversation(listening);
	}
}

/* ---- the wait for a last sample to be handed on ---- */

static _Atomic int handed_on, interrupted;
static pthread_t waiting;

static void interrupt(int signal)
{
	(void)signal;
	atomic_store(&interrupted, 1);
}

/* An exporter that takes its time, and a signal that comes meanwhile. */
static void *hand_on(void *listening)
{
	int final = accept(*(int *)listening, NULL, NULL);

	expect_hello(final, CONNECTION_FINAL);
	expect_sample(final, 0, SAMPLE_FINAL, 4);
	pthread_kill(waiting, SIGUSR1);
	while (!atomic_load(&interrupted))
		usleep(100);
	usleep(20000);
	atomic_store(&handed_on, 1);
	close(final);
	return NULL;
}

static struct farewell say_farewell(const char *wait, enum end_reason end)
{
	struct farewell f;

	setenv("MPIT_AGENT_FINAL_WAIT", wait, 1);
	last_prepare();
	CHECK(gate_enter());
	f = last_send(&link_of_rank.paths, &identity, &session, end);
	gate_leave();
	return f;
}

/* An exporter that has it over the connection that stands, and closes that when it likes. */
static void *hand_on_later(void *connection)
{
	int fd = *(int *)connection;

	CHECK(expect_sample(fd, 0, SAMPLE_FINAL, 2) == 8);
	usleep(20000);
	atomic_store(&handed_on, 1);
	close(fd);
	return NULL;
}

void test_the_end_waits_for_a_connection_that_stands(void)
{
	struct farewell f;
	pthread_t exporter;
	int listening, fd;

	setenv("MPIT_AGENT_FINAL_WAIT", "60000", 1);
	fd = ask_for_the_last(&listening);
	atomic_store(&handed_on, 0);
	CHECK(pthread_create(&exporter, NULL, hand_on_later, &fd) == 0);
	f = say_last(END_FINALIZE);
	last_await(&f);
	CHECK(atomic_load(&handed_on));
	pthread_join(exporter, NULL);
	end_after_the_last(listening);

	/* An exporter that never closes it. */
	setenv("MPIT_AGENT_FINAL_WAIT", "1000", 1);
	fd = ask_for_the_last(&listening);
	f = say_last(END_EXIT);
	last_await(&f);
	CHECK(monotonic_ns() >= f.deadline);
	close(fd);
	end_after_the_last(listening);
	unsetenv("MPIT_AGENT_FINAL_WAIT");
	last_prepare();
}

static void leave(int signal)
{
	struct farewell f = say_last(END_EXIT);

	(void)signal;
	last_await(&f);
}

/* exit in a signal handler, with a log. The thread sanitizer reports what allocates there. */
void test_the_end_in_a_signal_handler(void)
{
	struct sigaction action = { .sa_handler = leave };
	pthread_t exporter;
	int listening, fd;

	setenv("MPIT_AGENT_FINAL_WAIT", "60000", 1);
	setenv("MPIT_AGENT_LOG", "1", 1);
	fd = ask_for_the_last(&listening);
	agent_log_init();
	atomic_store(&handed_on, 0);
	CHECK(pthread_create(&exporter, NULL, hand_on_later, &fd) == 0);
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(raise(SIGUSR1) == 0);
	CHECK(atomic_load(&handed_on));
	signal(SIGUSR1, SIG_DFL);
	pthread_join(exporter, NULL);
	end_after_the_last(listening);
	unsetenv("MPIT_AGENT_LOG");
	unsetenv("MPIT_AGENT_FINAL_WAIT");
	agent_log_init();
	last_prepare();
}

static void await_what_is_handed_on(int listening)
{
	struct sigaction action = { .sa_handler = interrupt };
	const enum end_reason ends[] = { END_FINALIZE, END_EXIT };
	struct farewell f;
	pthread_t exporter;
	int null;

	waiting = pthread_self();
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	for (size_t i = 0; i < 2; i++) {
		atomic_store(&handed_on, 0);
		atomic_store(&interrupted, 0);
		f = say_farewell("60000", ends[i]);
		CHECK(f.c.fd >= 0);
		CHECK(pthread_create(&exporter, NULL, hand_on, &listening) == 0);
		last_await(&f);
		CHECK(atomic_load(&handed_on) && atomic_load(&interrupted));
		CHECK(fcntl(f.c.fd, F_GETFD) < 0);
		pthread_join(exporter, NULL);
	}
	signal(SIGUSR1, SIG_DFL);

	/* An exporter that never closes, and one that isn't there any more when it has been told everything. */
	f = say_farewell("30", END_FINALIZE);
	last_await(&f);
	CHECK(monotonic_ns() >= f.deadline && fcntl(f.c.fd, F_GETFD) < 0);
	close(accept(listening, NULL, NULL));
	f = say_farewell("60000", END_FINALIZE);
	close(accept(listening, NULL, NULL));
	last_await(&f);

	/* The program has closed it meanwhile, and given its number to something else: that stays. */
	f = say_farewell("60000", END_EXIT);
	null = open("/dev/null", O_RDONLY);
	CHECK(dup2(null, f.c.fd) == f.c.fd);
	f.deadline = 0;
	last_await(&f);
	CHECK(fcntl(f.c.fd, F_GETFD) >= 0);
	close(f.c.fd);
	close(null);
	close(accept(listening, NULL, NULL));

	/* An abort is not held up, nor is anybody where nothing is to be waited for. */
	CHECK(say_farewell("60000", END_ABORT).c.fd < 0);
	CHECK(say_farewell("0", END_FINALIZE).c.fd < 0);
	CHECK(say_farewell("nonsense", END_FINALIZE).c.fd < 0);
	CHECK(say_farewell("-1", END_FINALIZE).c.fd < 0);
	for (int i = 0; i < 4; i++)
		close(accept(listening, NULL, NULL));
	say_farewell("60000", END_ABORT);
	close(accept(listening, NULL, NULL));
}

void test_conversation(void)
{
	uint64_t unseen[3] = { 0 }, seen[3], blob[2] = { 5, 0x6f6c6c6568 }, first = 0;
	struct frame f;
	int listening, fd, final;

	fake_reset();
	variable("mood", STATE, TYPE_INT, 4, BIND_NONE, 1)->value[0][0].i = 7;
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1)->value[1][0].i = 41;
	CHECK(gate_try());
	open_session("", 10);
	object_freed(&session, make(BIND_COMM, 1));
	make(BIND_COMM, 2);
	gate_leave();
	listening = begin_conversation(false);
	fd = accept(listening, NULL, NULL);
	expect_hello(fd, CONNECTION_STAYS);
	request(fd, REQUEST_SAMPLE, 1, unseen, 3);
	CHECK(expect_sample(fd, 1, SAMPLE_FRESH, 4) == 7); /* ENUMS, VARIABLES, LAYOUT, REMAINS */
	seen[0] = session.catalogue.generation;
	seen[1] = session.layout_generation;
	seen[2] = session.remains.generation;
	request(fd, REQUEST_SAMPLE, 2, seen, 3);
	expect_sample(fd, 2, SAMPLE_FRESH, 0); /* numbers only */

	request(fd, 99, 3, NULL, 0);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_ERROR && take(&f) == ERROR_UNSUPPORTED && f.header.sequence == 3);
	free(f.words);

	/* 3,000 control variables come in several parts. */
	for (unsigned parts = 0; first < FAKE_CVARS; parts++) {
		uint64_t enumerations[4];
		size_t count;

		CHECK(parts < 100);
		f = cvars_page(fd, first, enumerations, &count);
		CHECK(f.words[1] > first);
		first = take(&f);
		free(f.words);
	}
	first = 0;
	request(fd, REQUEST_CATEGORIES, 5, &first, 1);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_CATEGORIES && take(&f) == 1 && take(&f) == 1 && take(&f) == 1);
	free(f.words);

	/* Exporters of before send what is not answered, and no longer known; they skip the answer. */
	request(fd, 68, 6, blob, 2);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_ERROR && take(&f) == ERROR_UNSUPPORTED && f.header.sequence == 6);
	free(f.words);
	request(fd, REQUEST_SAMPLE, 7, seen, 3);
	expect_sample(fd, 7, SAMPLE_FRESH, 0);
	close(fd);
	fd = accept(listening, NULL, NULL);
	expect_hello(fd, CONNECTION_STAYS);

	/* Garbage ends the connection, nothing else. */
	CHECK(send(fd, "not the protocol at all", 23, 0) == 23);
	close(fd);
	fd = accept(listening, NULL, NULL);
	expect_hello(fd, CONNECTION_STAYS);

	/* The last sample, over a connection of its own; the thread leaves, so that pthread_exit can end the program. */
	CHECK(gate_enter());
	agent_move(AGENT_RUNNING, AGENT_FINAL);
	last_send(&link_of_rank.paths, &identity, &session, END_FINALIZE);
	link_stop();
	gate_leave();
	final = accept(listening, NULL, NULL);
	expect_hello(final, CONNECTION_FINAL);
	CHECK(expect_sample(final, 0, SAMPLE_FINAL, 4) == 7);
	close(final);
	CHECK(recv(fd, &first, sizeof first, 0) == 0);
	close(fd);

	/* exit in a signal handler: the same without an allocation. */
	CHECK(gate_enter());
	last_send(&link_of_rank.paths, &identity, &session, END_EXIT);
	gate_leave();
	final = accept(listening, NULL, NULL);
	expect_hello(final, CONNECTION_FINAL);
	CHECK(expect_sample(final, 0, SAMPLE_FINAL, 4) == 7);
	close(final);

	await_what_is_handed_on(listening);

	/* Nobody listens: the last sample is lost at once, without a wait. */
	close(listening);
	unlink(path);
	CHECK(gate_enter());
	CHECK(last_send(&link_of_rank.paths, &identity, &session, END_FINALIZE).c.fd < 0);
	gate_leave();
	unsetenv("MPIT_AGENT_FINAL_WAIT");
	last_prepare();
	end_conversation(-1);
}

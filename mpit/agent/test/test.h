/* test.h - what the agent's tests share: CHECK, the session that they work on, a conversation with the agent's
 * thread, and their names. */
#ifndef MPIT_TEST_H
#define MPIT_TEST_H

#include "agent.h"
#include "fake_abi.h"
#include "byhandle/byhandle.h"
#include "frames.h"
#include "handles.h"
#include "link.h"
#include "objects.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                               \
	do {                                                                           \
		if (!(condition)) {                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                       \
		}                                                                      \
	} while (0)

enum { STATE = 0, LEVEL = 1, LOWWATERMARK = 5, COUNTER = 6, TIMER = 8, GENERIC = 9 };

/* The session of the test that runs, against fake_abi; each test opens and drops it. */
extern struct session session;

/* A further variable of the library's, all of its values zero; what else it is, the test writes into what is
 * returned. */
struct fake_variable *variable(const char *name, int mpi_class, int datatype, int bytes, int bind, int count);

void open_session(const char *deny, size_t most_objects);

/* As the agent's thread does it. */
bool sample_with(bool (*stop)(void));

/* An object that the program makes; NULL: it is not tracked. */
struct object *make(int kind, int handle);

/* A value of a double from its word. */
double as_double(uint64_t word);

/* What remains of the variable in freed objects of that name; NULL: nothing. */
const struct remain *remain_of(const char *name, uint32_t number);

/* ---- frames over a real socket: the test plays the exporter ---- */

struct frame {
	struct wire_header header;
	uint64_t *words;
	size_t at;
};

/* Whose words the caller frees. */
struct frame next_frame(int fd);

/* The next word of a frame; a string is skipped whole. */
uint64_t take(struct frame *f);
void skip_string(struct frame *f);

void request(int fd, enum frame_type type, uint32_t sequence, const uint64_t *words, size_t count);

/* Takes the HELLO that comes next. */
void expect_hello(int fd, enum connection_kind kind);

/* The first value of the sample that comes after so many other frames; 0: it has none. */
uint64_t expect_sample(int fd, uint32_t sequence, enum sample_status status, unsigned frames_before);

enum statistic {
	STATISTIC_BUSY = 1,
	STATISTIC_LEVEL = 8,
	STATISTIC_CALLS,
	STATISTIC_PAUSED_NS = 11,
	STATISTIC_STAMP,
};

/* Status of the sample that comes, whatever comes before it; the value of one word of its statistics. */
uint64_t sample_statistic(int fd, uint32_t sequence, enum sample_status status, unsigned which);

/* Calls under way, as the sample that comes tells of them, whatever comes before it. */
struct told_calls {
	uint64_t known, inside_ns, observed_ns, running_ns, bind, object, offset, activity_ns[ACTIVITIES];
	char function[64], module[4096];
	uint64_t finalize_ns, cpu_ns, thread_count;
	struct source_thread threads[SOURCE_THREADS]; /* their function and collective are NULL */
	char function_of_second[64], collective_of_second[64];
	struct phases phases; /* their list and count */
	uint64_t comm_count;
	struct source_comm comm; /* the last one */
};
struct told_calls sample_calls(int fd, uint32_t sequence, enum sample_status status);

/* A page of control variables: the enumerations that stand before it, and the frame at its list. */
struct frame cvars_page(int fd, uint64_t first, uint64_t enumerations[4], size_t *count);

/* ---- conversations ---- */

extern struct identity identity;
extern struct link link_of_rank;
extern char path[128]; /* of the socket */

/* Lets the agent's thread run against a socket of the test's own, which is returned; the session is open. */
int begin_conversation(bool passive);
void end_conversation(int listening);

/* The same up to the agent's HELLO: the connection is returned. */
int open_conversation(int *listening);

/* The tools' side is over when the agent has connected again. */
int reconnect(int fd, int listening);

/* Ends the tools' side, the agent's thread and the session. */
void close_conversation(int fd, int listening);

/* ---- the tests ---- */

/* buildid_test.c */
void test_build_ids(void);

/* wire_test.c */
void test_a_string_is_padded_with_zeros(void);
void test_a_frame_over_the_bound_is_never_sent(void);

/* site_test.c */
void test_what_the_site_says(void);
void test_a_wrong_file_of_the_sites(void);
void test_shares_of_jobs(void);
void test_any_text_is_a_file_of_the_sites(void);

/* session_test.c */
void test_deny_list(void);
void test_open_list(void);
void test_values_are_widened(void);
void test_what_cannot_be_opened_is_said(void);
void test_continuous_variables_are_never_started(void);
void test_what_costs_something_is_opened_on_request(void);
void test_what_is_requested_from_the_beginning(void);
void test_events_are_variables(void);
void test_events_are_counted(void);
void test_a_registration_in_use_is_kept(void);
void test_a_request_is_held_to_what_may_be_opened(void);
void test_variables_appear_later_and_come_to_life(void);
void test_a_sample_gives_way(void);
void test_what_comes_to_life_is_not_forgotten_when_a_sample_gives_way(void);
void test_a_watermark_of_zero_remains(void);
void test_a_counter_of_zero_remains_and_a_level_does_not(void);
void test_a_failed_read_is_zero_and_counted(void);
void test_selection(void);

/* objects_test.c */
void test_a_freed_object_leaves_what_it_counted(void);
void test_remains_grow_with_the_elements(void);
void test_a_source_that_starts_anywhere(void);
void test_a_rename_starts_a_new_contribution(void);
void test_bounds(void);
void test_an_object_got_repeatedly_ends_with_its_last_reference(void);
void test_a_handle_that_is_used_again_is_another_object(void);
void test_a_bound_handle_is_closed_before_its_objects_end(void);
void test_thousands_of_objects_come_and_go(void);
void test_each_kind_has_a_bound_of_its_own(void);
void test_details_are_bounded(void);
void test_the_layouts_size_is_known(void);
void test_keys_come_and_go(void);
void test_details_on_the_wire(void);
void test_what_a_constructors_name_tells(void);
void test_a_name_too_long_for_the_layout_is_cut(void);

/* tools_test.c */
void test_values_are_narrowed_or_refused(void);
void test_a_tool_has_sessions_and_handles_of_its_own(void);
void test_a_tools_handle_ends_before_its_object(void);
void test_tools_are_forgotten_when_mpi_is_over(void);
void test_all_handles_of_a_session(void);
void test_tools_are_bounded(void);
void test_writing_must_be_allowed(void);
void test_control_variables_one_by_one(void);
void test_control_variables_name_their_enumerations(void);
void test_large_values_of_a_bound_control_variable(void);
void test_categories_have_a_stamp(void);
void test_tools_stay_out_of_a_passive_rank(void);

/* pcontrol_test.c */
void test_what_is_counted_while_switched_off_is_subtracted(void);
void test_an_object_that_goes_while_switched_off_ends_where_it_was(void);
void test_a_rename_while_switched_off(void);
void test_what_cannot_be_read_is_not_subtracted(void);
void test_time_of_phases(void);
void test_levels_and_pauses_are_told(void);

/* source_test.c */
void test_a_source_is_taken_or_left(void);
void test_variables_of_a_source_appear_among_the_librarys(void);
void test_a_pair_counts_since_its_object_was_made(void);
void test_new_pairs_give_way(void);
void test_variables_of_a_source_may_be_denied(void);
void test_variables_of_a_source_are_selected(void);
void test_pairs_are_bounded(void);
void test_a_source_is_told_of_objects(void);
void test_an_object_that_is_not_tracked_is_not_told(void);
void test_a_freed_object_leaves_what_was_measured(void);
void test_a_rename_splits_what_was_measured(void);
void test_a_pair_of_an_object_that_has_gone_is_lost_and_counted(void);
void test_a_source_is_switched_off_with_the_program(void);
void test_a_source_measures_only_while_the_agent_runs(void);
void test_tools_are_refused_what_the_library_does_not_have(void);
void test_a_source_has_a_category(void);
void test_variables_of_a_source_on_the_wire(void);
void test_calls_under_way_on_the_wire(void);
void test_what_the_kernel_says_of_threads(void);
void test_what_the_kernel_does_not_say(void);
void test_a_passive_rank_tells_of_calls_under_way(void);
void test_communicators_on_the_wire(void);
void test_where_an_address_is_mapped_from(void);
void test_the_caller_of_a_frame(void);
void test_which_files_are_bindings(void);
void test_what_python_runs(void);

/* conversation_test.c */
void test_gate(void);
void test_the_gate_does_not_count_time_that_nobody_has_run(void);
void test_the_end_wakes_who_sleeps(void);
void test_filters_that_come_are_noticed(void);
void test_the_last_sample_goes_over_the_connection_that_stands(void);
void test_a_connection_that_stands_no_longer_takes_no_last_sample(void);
void test_an_exporter_that_reads_nothing_keeps_no_thread(void);
void test_giving_up_ends_the_threads(void);
void test_the_end_waits_for_a_connection_that_stands(void);
void test_the_end_in_a_signal_handler(void);
void test_a_passive_rank_is_read_by_its_program_alone(void);
void test_a_request_to_open(void);
void test_conversation(void);

#endif

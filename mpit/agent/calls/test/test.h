/* test.h - what the tests of the call profile's runtime share, and their names. */
#ifndef MPIT_CALLS_TEST_H
#define MPIT_CALLS_TEST_H

#include "block.h"
#include "fake_mpi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

extern source_function mpit_agent_source;
/* Begun, in main. */
extern const struct source *source;
/* Numbers of objects, of which none is used twice. */
extern uint32_t next_object;

/* A live object of the program's; its number. */
uint32_t make(int kind, intptr_t handle);
void freed(int kind, intptr_t handle, uint32_t number);

/* What the agent would read: variable by its name, which must be there. */
size_t variable(const char *name);
uint64_t bytes(const char *name, uint32_t object);
/* How many calls, and where they are counted. */
uint64_t calls(const char *function, uint32_t object);

/* What discover tells, appended. */
struct told {
	size_t count;
	struct {
		size_t variable;
		uint32_t object;
	} pairs[4096];
};
void tells(struct told *told);
bool tells_of(const struct told *told, const char *name, uint32_t object);

/* In a thread of its own, to its end. */
void in_a_thread(void *(*run)(void *), void *argument);
/* Blocks there are. */
unsigned block_count(void);
/* Whether mmap fails. */
extern _Atomic bool no_memory;

/* asked_test.c */
void test_words_that_are_asked_for(void);

/* sizes_test.c */
void test_a_size_goes_into_its_bucket(void);
void test_a_call_has_one_size(void);
void test_sizes_are_counted_if_asked_for(void);
void test_a_size_is_counted_where_its_call_began(void);

/* clock_test.c */
void test_buckets_end_where_they_should(void);
void test_buckets_of_nanoseconds_are_exact(void);
void test_sums_are_exact_and_never_fall(void);
void test_the_clocks_agree(void);

/* calls_test.c */
void test_calls_and_bytes(void);
void test_a_failed_call_has_no_bytes(void);
void test_a_duration_goes_into_its_bucket(void);
void test_nothing_is_counted_while_switched_off(void);
void test_variables_and_pairs_are_told_of_once(void);
void test_sizes_of_types_are_kept_until_one_is_freed(void);
void test_a_type_that_is_freed_during_a_call(void);
void test_a_type_is_freed_while_its_size_is_asked_for(void);
void test_places(void);

/* marks_test.c */
void test_only_the_outermost_call_counts(void);
void test_a_call_left_by_longjmp_blinds_nobody(void);
void test_marks_on_other_stacks(void);

/* objects_test.c */
void test_a_handle_that_is_used_again_is_another_object(void);
void test_an_untracked_object_is_object_0(void);
void test_an_object_freed_during_a_call(void);
void test_objects_are_found_while_others_come_and_go(void);
void test_the_registry_is_bounded(void);

/* cells_test.c */
void test_cells_of_gone_objects_are_used_again(void);
void test_a_full_block_counts_on_object_0(void);

/* threads_test.c */
void test_threads_against_a_reader(void);
void test_a_handle_goes_from_thread_to_thread(void);
void test_counts_outlive_their_threads(void);
void test_calls_without_memory_are_counted(void);
void test_a_child_measures_nothing(void);

/* under_way_test.c */
void test_a_call_under_way_is_told(void);
void test_time_inside_is_that_of_the_calls(void);
void test_time_inside_by_activity(void);
void test_polling(void);
void test_a_pause_is_not_observed(void);
void test_threads_are_told_apart(void);
void test_whom_a_call_names(void);
void test_whose_requests_a_call_waits_for(void);
void test_requests_are_told_apart_while_they_are_noted(void);
void test_so_many_threads_are_told_of(void);
void test_what_a_longjmp_leaves_under_way(void);
void test_a_threads_end_clears_its_call(void);
void test_a_call_returns_on_another_thread(void);
void test_calls_under_way_against_a_reader(void);


/* order_test.c */
void test_collectives_are_counted_where_they_begin(void);
void test_numbers_that_are_not_known(void);
void test_a_collective_that_is_left_is_in_doubt(void);
void test_what_is_made_after_finalize_has_no_identity(void);
void test_members_in_another_order_are_others(void);
void test_a_collective_before_the_world_is_known(void);
void test_intercommunicators_that_threads_make_at_once(void);
void test_communicators_are_told_of_when_they_change(void);
void test_identities_agree(void);

/* peers_test.c */
void test_ranks_of_the_world(void);
void test_tables_are_shared_and_bounded(void);
void test_peers_have_what_was_sent(void);
void test_no_place_of_a_peer_ever_falls(void);
void test_peers_of_threads(void);
void test_persistent_sends_count_at_each_start(void);
void test_an_object_freed_while_it_is_sent_on(void);

/* sites_test.c */
void test_calls_have_the_place_they_are_made_from(void);
void test_places_of_messages_have_their_peers(void);
void test_calls_through_a_binding_have_the_programs_place(void);
void test_calls_have_their_callers(void);
void test_what_finds_no_place_is_counted_together(void);
void test_sites_of_threads(void);

#endif

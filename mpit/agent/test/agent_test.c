/*
 * agent_test.c - the agent without MPI: every part but the interposed functions, against a library
 * that the test scripts. Run under the sanitizers and under valgrind by `make -C mpit/agent test`.
 * This is the list of the tests; what they share is in test.h.
 */
#include "gate.h"
#include "test.h"

#include <stdio.h>

int main(void)
{
	gate_prepare();
	test_a_string_is_padded_with_zeros();
	test_a_frame_over_the_bound_is_never_sent();
	test_build_ids();
	test_what_the_site_says();
	test_a_wrong_file_of_the_sites();
	test_shares_of_jobs();
	test_any_text_is_a_file_of_the_sites();
	test_deny_list();
	test_open_list();
	test_values_are_widened();
	test_what_cannot_be_opened_is_said();
	test_continuous_variables_are_never_started();
	test_what_costs_something_is_opened_on_request();
	test_what_is_requested_from_the_beginning();
	test_events_are_variables();
	test_events_are_counted();
	test_a_registration_in_use_is_kept();
	test_a_request_is_held_to_what_may_be_opened();
	test_variables_appear_later_and_come_to_life();
	test_a_sample_gives_way();
	test_what_comes_to_life_is_not_forgotten_when_a_sample_gives_way();
	test_a_watermark_of_zero_remains();
	test_a_counter_of_zero_remains_and_a_level_does_not();
	test_a_failed_read_is_zero_and_counted();
	test_selection();
	test_a_freed_object_leaves_what_it_counted();
	test_remains_grow_with_the_elements();
	test_a_source_that_starts_anywhere();
	test_a_rename_starts_a_new_contribution();
	test_bounds();
	test_an_object_got_repeatedly_ends_with_its_last_reference();
	test_a_handle_that_is_used_again_is_another_object();
	test_a_bound_handle_is_closed_before_its_objects_end();
	test_thousands_of_objects_come_and_go();
	test_each_kind_has_a_bound_of_its_own();
	test_details_are_bounded();
	test_the_layouts_size_is_known();
	test_keys_come_and_go();
	test_details_on_the_wire();
	test_what_a_constructors_name_tells();
	test_a_name_too_long_for_the_layout_is_cut();
	test_values_are_narrowed_or_refused();
	test_what_is_counted_while_switched_off_is_subtracted();
	test_an_object_that_goes_while_switched_off_ends_where_it_was();
	test_a_rename_while_switched_off();
	test_what_cannot_be_read_is_not_subtracted();
	test_a_source_is_taken_or_left();
	test_variables_of_a_source_appear_among_the_librarys();
	test_a_pair_counts_since_its_object_was_made();
	test_new_pairs_give_way();
	test_variables_of_a_source_may_be_denied();
	test_variables_of_a_source_are_selected();
	test_pairs_are_bounded();
	test_a_source_is_told_of_objects();
	test_an_object_that_is_not_tracked_is_not_told();
	test_a_freed_object_leaves_what_was_measured();
	test_a_rename_splits_what_was_measured();
	test_a_pair_of_an_object_that_has_gone_is_lost_and_counted();
	test_a_source_is_switched_off_with_the_program();
	test_a_source_measures_only_while_the_agent_runs();
	test_tools_are_refused_what_the_library_does_not_have();
	test_a_source_has_a_category();
	test_variables_of_a_source_on_the_wire();
	test_calls_under_way_on_the_wire();
	test_what_the_kernel_says_of_threads();
	test_what_the_kernel_does_not_say();
	test_a_passive_rank_tells_of_calls_under_way();
	test_communicators_on_the_wire();
	test_where_an_address_is_mapped_from();
	test_the_caller_of_a_frame();
	test_which_files_are_bindings();
	test_what_python_runs();
	test_gate();
	test_the_gate_does_not_count_time_that_nobody_has_run();
	test_the_end_wakes_who_sleeps();
	test_filters_that_come_are_noticed();
	test_the_last_sample_goes_over_the_connection_that_stands();
	test_a_connection_that_stands_no_longer_takes_no_last_sample();
	test_an_exporter_that_reads_nothing_keeps_no_thread();
	test_giving_up_ends_the_threads();
	test_the_end_waits_for_a_connection_that_stands();
	test_the_end_in_a_signal_handler();
	test_a_passive_rank_is_read_by_its_program_alone();
	test_a_request_to_open();
	test_a_tool_has_sessions_and_handles_of_its_own();
	test_a_tools_handle_ends_before_its_object();
	test_tools_are_forgotten_when_mpi_is_over();
	test_all_handles_of_a_session();
	test_tools_are_bounded();
	test_writing_must_be_allowed();
	test_control_variables_one_by_one();
	test_control_variables_name_their_enumerations();
	test_large_values_of_a_bound_control_variable();
	test_categories_have_a_stamp();
	test_tools_stay_out_of_a_passive_rank();
	test_time_of_phases();
	test_levels_and_pauses_are_told();
	test_conversation();
	puts("agent tests: all passed");
	return 0;
}

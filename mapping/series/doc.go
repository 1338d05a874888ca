// Package series is what the values of a rank become: series that go on from sample to sample.
package series

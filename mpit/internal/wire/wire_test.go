package wire

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// frame returns a frame's bytes.
func frame(typ uint16, seq uint32, words ...uint64) []byte {
	var e Encoder
	e.Begin(typ, seq)
	e.Words(words)
	e.Finish()
	return e.Bytes()
}

func TestReaderReturnsFrames(t *testing.T) {
	stream := append(frame(TypeSample, 7, 1, 2, 3), frame(TypeError, 8)...)
	for name, src := range map[string]io.Reader{
		"at once":      bytes.NewReader(stream),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
		"with the end": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(src, MaxAgentPayload)
			f, err := r.Next()
			require.NoError(t, err)
			assert.Equal(t, Frame{
				Type: TypeSample, Version: Version, Seq: 7,
				Payload: []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0},
			}, f)
			f, err = r.Next()
			require.NoError(t, err)
			assert.Equal(t, Frame{Type: TypeError, Version: Version, Seq: 8, Payload: []byte{}}, f)
			_, err = r.Next()
			assert.Equal(t, io.EOF, err)
		})
	}
}

func TestReaderRefuses(t *testing.T) {
	good := frame(TypeSample, 1, 1, 2)
	change := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	for name, c := range map[string]struct {
		stream []byte
		reason string
	}{
		"another protocol":      {[]byte("GET /metrics HTTP/1.1\r\n"), ReasonBadMagic},
		"version 0":             {change(6, 0), ReasonVersion},
		"a payload over limit":  {change(11, 1), ReasonTooLarge},
		"end within the header": {good[:5], ReasonTruncated},
		"end after the header":  {good[:HeaderBytes], ReasonTruncated},
		"end within a word":     {good[:len(good)-1], ReasonTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewReader(bytes.NewReader(c.stream), MaxAgentPayload).Next()
			var breach *Error
			require.ErrorAs(t, err, &breach)
			assert.Equal(t, c.reason, breach.Reason)
		})
	}
}

func TestReaderPassesErrorsOn(t *testing.T) {
	gone := errors.New("gone")
	_, err := NewReader(iotest.ErrReader(gone), MaxAgentPayload).Next()
	assert.ErrorIs(t, err, gone)
}

// A length in a header is no reason to make room for so much.
func TestReaderGrowsWithWhatArrives(t *testing.T) {
	announced := frame(TypeSample, 1)
	announced[10] = 8 // 4 MiB
	r := NewReader(io.MultiReader(bytes.NewReader(announced), bytes.NewReader(make([]byte, 10_000))), MaxAgentPayload)
	_, err := r.Next()
	require.Error(t, err)
	assert.LessOrEqual(t, cap(r.buf), 32<<10)
}

func TestReaderGivesLargeBuffersBack(t *testing.T) {
	stream := append(frame(TypeLayout, 1, make([]uint64, 100_000)...), frame(TypeSample, 1, 42)...)
	r := NewReader(bytes.NewReader(stream), MaxAgentPayload)
	f, err := r.Next()
	require.NoError(t, err)
	assert.Len(t, f.Payload, 800_000)
	f, err = r.Next()
	require.NoError(t, err)
	assert.Equal(t, byte(42), f.Payload[0])
	_, err = r.Next()
	assert.Equal(t, io.EOF, err)
	assert.LessOrEqual(t, cap(r.buf), keptBuffer)
}

// A buffer that a catalogue has filled is not kept for the samples behind it, which are small. One that is used again
// and again is.
func TestReaderKeepsWhatItNeeds(t *testing.T) {
	large, small := make([]uint64, keptBuffer/WordBytes/2), []uint64{42}
	for _, test := range []struct {
		name   string
		frames [][]uint64
		large  bool // the buffer, in the end
	}{
		{"a catalogue and a sample", [][]uint64{large, small}, false},
		{"a catalogue", [][]uint64{small, large}, true},
		{"large samples", [][]uint64{large, large, large}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			src, dst := io.Pipe()
			r, counted := NewReader(src, MaxAgentPayload), 0
			r.Room = func(bytes int) error { counted += bytes; return nil }
			go func() {
				for _, words := range test.frames {
					_, _ = dst.Write(frame(TypeSample, 1, words...))
				}
				_ = dst.Close()
			}()
			for range test.frames {
				_, err := r.Next()
				require.NoError(t, err)
			}
			_, err := r.Next()
			assert.Equal(t, io.EOF, err)
			assert.Equal(t, test.large, len(r.buf) > firstBuffer)
			assert.Equal(t, len(r.buf), counted, "what is given back is no longer counted")
		})
	}
}

func TestFieldsComeBack(t *testing.T) {
	when := time.Unix(1_700_000_000, 123)
	var e Encoder
	e.Begin(TypeHello, 0)
	e.Word(math.MaxUint64)
	e.Int(-5)
	e.Time(when)
	e.Time(time.Time{})
	e.String("eight by")
	e.String("nine byte")
	e.String("")
	e.Array([]uint64{4, 5})
	e.Word(2)
	e.Record(func() { e.String("a"); e.Word(1) })
	e.Record(func() {})
	e.Finish()
	f, err := NewReader(bytes.NewReader(e.Bytes()), MaxAgentPayload).Next()
	require.NoError(t, err)

	d := NewDecoder(f.Payload, &err)
	assert.Equal(t, uint64(math.MaxUint64), d.Word())
	assert.Equal(t, -5, d.Int("x"))
	assert.True(t, when.Equal(d.Time("x")))
	assert.True(t, d.Time("x").IsZero())
	assert.Equal(t, "eight by", d.String("x"))
	assert.Equal(t, "nine byte", d.String("x"))
	assert.Empty(t, d.String("x"))
	assert.Equal(t, []uint64{4, 5}, d.Array("x", 10))
	type record struct {
		text  string
		word  uint64
		array []uint64
	}
	var records []record
	for r := range d.Records("x", 10) {
		records = append(records, record{r.String("x"), r.Word(), r.Array("x", 10)})
	}
	assert.Equal(t, []record{{"a", 1, nil}, {}}, records, "with a field that an older peer doesn't know")
	_, ok := d.Optional("x")
	assert.False(t, ok, "nor does it know what comes behind")
	assert.Zero(t, d.Remaining())
	assert.NoError(t, err)
}

func eachRecord(d *Decoder) {
	for range d.Records("x", 10) {
	}
}

func TestDecoderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		words  []uint64
		read   func(d *Decoder)
		reason string
	}{
		"a string beyond the end":   {[]uint64{9, 0}, func(d *Decoder) { d.String("x") }, ReasonMalformed},
		"a string over the limit":   {[]uint64{MaxString + 1}, func(d *Decoder) { d.String("x") }, ReasonTooLarge},
		"an endless string":         {[]uint64{math.MaxUint64}, func(d *Decoder) { d.String("x") }, ReasonTooLarge},
		"an array beyond the end":   {[]uint64{3, 1, 2}, func(d *Decoder) { d.Array("x", 10) }, ReasonMalformed},
		"an array over the limit":   {[]uint64{11}, func(d *Decoder) { d.Array("x", 10) }, ReasonTooLarge},
		"a list beyond the end":     {[]uint64{2, 0}, func(d *Decoder) { eachRecord(d) }, ReasonMalformed},
		"a list over the limit":     {[]uint64{11}, func(d *Decoder) { eachRecord(d) }, ReasonTooLarge},
		"a record beyond the end":   {[]uint64{2, 0}, func(d *Decoder) { d.Record("x") }, ReasonMalformed},
		"a record that is missing":  {nil, func(d *Decoder) { d.Record("x") }, ReasonMalformed},
		"33 bits for 32":            {[]uint64{1 << 32}, func(d *Decoder) { d.Uint32("x") }, ReasonMalformed},
		"33 bits for a signed word": {[]uint64{1 << 31}, func(d *Decoder) { d.Int("x") }, ReasonMalformed},
		"a negative duration":       {[]uint64{1 << 63}, func(d *Decoder) { d.Duration("x") }, ReasonMalformed},
		"a negative time":           {[]uint64{1 << 63}, func(d *Decoder) { d.Time("x") }, ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			d := NewDecoder(frame(0, 0, append(c.words, 7)...)[HeaderBytes:][:len(c.words)*WordBytes], &err)
			c.read(&d)
			var breach *Error
			require.ErrorAs(t, err, &breach)
			assert.Equal(t, c.reason, breach.Reason)
			assert.Zero(t, d.Word(), "nothing is read after a breach")
			first := err
			d.Fail(ReasonVersion, "another")
			assert.Same(t, first, err, "the first breach stays")
		})
	}
}

// FuzzReader reads a stream of frames, whatever it is, and checks that no more memory is taken than has arrived.
func FuzzReader(f *testing.F) {
	f.Add(frame(TypeSample, 7, 1, 2, 3))
	f.Add(append(frame(TypeSample, 7, 1), frame(TypeSample, 7)...))
	f.Add([]byte(strings.Repeat("MPIT", 5)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := NewReader(bytes.NewReader(stream), MaxExporterPayload)
		for {
			f, err := r.Next()
			if err != nil {
				break
			}
			if len(f.Payload)%WordBytes != 0 || len(f.Payload) > MaxExporterPayload {
				t.Fatalf("a payload of %d bytes", len(f.Payload))
			}
		}
		if most := firstBuffer + 2*len(stream); cap(r.buf) > most {
			t.Fatalf("a buffer of %d bytes for a stream of %d", cap(r.buf), len(stream))
		}
	})
}

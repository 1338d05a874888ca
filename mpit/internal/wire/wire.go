// Package wire is the encoding of docs/internals/protocol.md: frames, words, strings, records and lists, and the
// exporter's requests. Package mpit reads with it what an agent sends; package mpittest writes that, and reads the
// requests.
//
// Nothing here trusts a length that it has read: memory grows only as bytes arrive, and never beyond the limits below.
package wire

import (
	"encoding/binary"
	"fmt"
)

// Version is the highest version of the protocol that this package speaks.
const Version = 1

// WordBytes is the size of a word.
const WordBytes = 8

// HeaderBytes is the size of a frame's header.
const HeaderBytes = 16

// The types of frames that an agent sends.
const (
	TypeHello      uint16 = 1
	TypeVariables  uint16 = 2
	TypeEnums      uint16 = 3
	TypeLayout     uint16 = 4
	TypeRemains    uint16 = 5
	TypeSample     uint16 = 6
	TypeCvars      uint16 = 7
	TypeCategories uint16 = 8
	TypeError      uint16 = 9
	TypeKept       uint16 = 10 // of earlier agents
	TypeTool       uint16 = 11
	TypeSites      uint16 = 12 // the highest
)

// The types of frames that an exporter sends.
const (
	TypeAskSample     uint16 = 64
	TypeSelect        uint16 = 65
	TypeAskCvars      uint16 = 66
	TypeAskCategories uint16 = 67
	TypeAskTool       uint16 = 69 // 68 was BLOB, which is never used again
	TypeOpen          uint16 = 70
	TypeAskFinal      uint16 = 71
	TypeAskSites      uint16 = 72
)

// The limits of docs/internals/protocol.md.
const (
	MaxAgentPayload    = 4 << 20   // bytes, agent to exporter
	MaxHello           = 256 << 10 // bytes: HELLO, which anybody may say
	MaxExporterPayload = 128 << 10 // bytes, exporter to agent
	MaxCatalogueFrame  = 256 << 10 // bytes: an agent cuts catalogues at this
	MaxString          = 64 << 10  // bytes
	MaxVariables       = 65536
	MaxObjects         = 10 * 16384 // ten kinds can be found; a frame has room for fewer
	MaxDetails         = 16         // of an object
	MaxDetailBytes     = 512        // of all details of an object
	MaxCvarObjects     = 64         // objects with a value in the record of a control variable
	MaxValues          = 262144     // words in a sample
	MaxAttributes      = 64
	MaxThreads         = 8  // of a rank, in a sample
	MaxPeers           = 64 // of a thread's call
	MaxPhases          = 16 // of a program
)

// The codes of an ERROR frame.
const (
	ErrorUnsupported uint64 = 1
	ErrorMalformed   uint64 = 2
	ErrorTooLarge    uint64 = 3
	ErrorNotNow      uint64 = 4
)

// The reasons of an Error. Package mpit exports them.
const (
	ReasonBadMagic  = "bad_magic"
	ReasonTooLarge  = "too_large"
	ReasonTruncated = "truncated"
	ReasonMalformed = "malformed"
	ReasonVersion   = "version"
	ReasonMemory    = "memory"
)

// Error is a breach of the protocol.
type Error struct {
	Reason string // one of the Reason constants
	Text   string
}

func (e *Error) Error() string { return e.Text }

// Errorf makes an Error.
func Errorf(reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// Frame is one frame as it was read. Payload is a whole number of words.
type Frame struct {
	Type    uint16
	Version uint16
	Seq     uint32
	Payload []byte
}

var magic = [4]byte{'M', 'P', 'I', 'T'}

// putHeader writes a frame's header over the first 16 bytes of b.
func putHeader(b []byte, typ uint16, version uint16, words int, seq uint32) {
	copy(b, magic[:])
	binary.LittleEndian.PutUint16(b[4:], typ)
	binary.LittleEndian.PutUint16(b[6:], version)
	binary.LittleEndian.PutUint32(b[8:], uint32(words))
	binary.LittleEndian.PutUint32(b[12:], seq)
}

package main

import "fmt"

// A kind is what mpi.h must declare where a parameter stands; test/prototypes.cpp has a check for each.
type kind string

const (
	kindBuffer      kind = "buffer"     // void *
	kindCount       kind = "count"      // int, in a form for large counts MPI_Count
	kindWideCount   kind = "wide_count" // MPI_Count in every form
	kindCounts      kind = "counts"     // int *, in a form for large counts MPI_Count *
	kindDisplace    kind = "displace"   // int * or MPI_Aint *: nothing reads them
	kindType        kind = "datatype"   // MPI_Datatype
	kindTypes       kind = "datatypes"  // MPI_Datatype *
	kindPeer        kind = "peer"       // int: a rank
	kindNumber      kind = "number"     // int
	kindNumbers     kind = "numbers"    // int *
	kindUnit        kind = "unit"       // int, in a form for large counts MPI_Aint
	kindAddress     kind = "address"    // MPI_Aint
	kindOffset      kind = "offset"     // MPI_Offset
	kindPointer     kind = "pointer"    // any
	kindString      kind = "string"     // char *
	kindComm        kind = "comm"       // MPI_Comm
	kindWin         kind = "win"        // MPI_Win
	kindFile        kind = "file"       // MPI_File
	kindNewComm     kind = "comm_at"    // MPI_Comm *, and so on
	kindNewWin      kind = "win_at"     //
	kindNewFile     kind = "file_at"    //
	kindGroup       kind = "group"      // MPI_Group
	kindInfo        kind = "info"       // MPI_Info
	kindInfos       kind = "info_at"    // MPI_Info *
	kindOp          kind = "op"         // MPI_Op
	kindSession     kind = "session"    // MPI_Session
	kindErrhandler  kind = "errhandler" // MPI_Errhandler
	kindMessage     kind = "message_at" // MPI_Message *
	kindRequest     kind = "request"    // MPI_Request
	kindRequestAt   kind = "request_at" // MPI_Request *
	kindStatus      kind = "status_at"  // MPI_Status *
	kindStatusArray kind = "statuses"   // MPI_Status *, of which there may be many
)

// The roles that a parameter may have in the table, by kind.
var roles = rolesByName(map[kind][]string{
	kindBuffer:      {"buf", "sendbuf", "recvbuf", "resultbuf", "comparebuf"},
	kindCount:       {"count", "sendcount", "recvcount", "resultcount", "targetcount"},
	kindWideCount:   {"widecount"},
	kindCounts:      {"sendcounts", "recvcounts"},
	kindDisplace:    {"displs", "sdispls", "rdispls"},
	kindType:        {"type", "sendtype", "recvtype", "resulttype", "targettype"},
	kindTypes:       {"sendtypes", "recvtypes"},
	kindPeer:        {"dest", "source", "root", "target"},
	kindNumber:      {"number", "tag", "sendtag", "recvtag", "partitions", "assert", "locktype", "amode"},
	kindNumbers:     {"numbers", "flag", "index", "indices", "errcodes"},
	kindUnit:        {"dispunit"},
	kindAddress:     {"disp", "size"},
	kindOffset:      {"offset"},
	kindPointer:     {"pointer", "sizeptr"},
	kindString:      {"string"},
	kindComm:        {"comm", "peercomm"},
	kindWin:         {"win"},
	kindFile:        {"file"},
	kindNewComm:     {"newcomm"},
	kindNewWin:      {"newwin"},
	kindNewFile:     {"newfile"},
	kindGroup:       {"group"},
	kindInfo:        {"info"},
	kindInfos:       {"infos"},
	kindOp:          {"op"},
	kindSession:     {"session"},
	kindErrhandler:  {"errhandler"},
	kindMessage:     {"message"},
	kindRequest:     {"requestvalue"},
	kindRequestAt:   {"request", "requests"},
	kindStatus:      {"status"},
	kindStatusArray: {"statuses"},
})

func rolesByName(byKind map[kind][]string) map[string]kind {
	names := map[string]kind{}
	for k, roles := range byKind {
		for _, r := range roles {
			names[r] = k
		}
	}
	return names
}

type parameter struct {
	role string
	// What it is called in C: the role, with a number behind where one stands there several times.
	name string
	kind kind
}

func parseParameters(words []string) ([]parameter, error) {
	var all []parameter
	seen := map[string]int{}
	for _, role := range words {
		k, known := roles[role]
		if !known {
			return nil, fmt.Errorf("parameter %q has no role in parameters.go", role)
		}
		seen[role]++
		p := parameter{role: role, name: role, kind: k}
		if n := seen[role]; n > 1 {
			// Of a role that means something, only one: which would be meant?
			switch k {
			case kindNumber, kindNumbers, kindPointer, kindGroup, kindType:
				p.name = fmt.Sprintf("%s%d", role, n)
			default:
				return nil, fmt.Errorf("parameter %q stands there twice", role)
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// A binding is the kind of object that calls are counted on.
type binding string

const (
	bindNone binding = "BIND_NONE"
	bindComm binding = "BIND_COMM"
	bindWin  binding = "BIND_WIN"
	bindFile binding = "BIND_FILE"
)

// object is what a call with these parameters is counted on, and the parameter that names it ("": none does).
func object(parameters []parameter) (binding, string) {
	for _, p := range parameters {
		switch p.role {
		case "comm":
			return bindComm, p.name
		case "win":
			return bindWin, p.name
		case "file":
			return bindFile, p.name
		}
	}
	return bindNone, ""
}

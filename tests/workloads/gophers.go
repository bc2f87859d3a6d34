// SPDX-License-Identifier: Apache-2.0

// A service whose goroutines burn CPU time in three functions, 60, 30 and 10 % of it, in slices whose
// order is left to chance, by the clock of the thread; or make garbage, so that the runtime works for
// them on other stacks (--garbage). Others wait for them, at a channel.
//
// --port N to listen at. Commands: `stats` (most_ns, some_ns, least_ns: what the functions have
// measured), `quit`.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	clockThreadCPU = 3
	sliceNs        = 370_000
)

var (
	mostNs, someNs, leastNs int64
	kept                    [64][]byte
	latest                  time.Time
)

func cpuNs() int64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPU, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

//go:noinline
func spin(counter *int64) {
	begin := cpuNs()
	now := begin
	for now < begin+sliceNs {
		for i := 0; i < 1000; i++ {
			_ = atomic.LoadInt64(counter)
		}
		latest = time.Now() // on the stack of the thread
		now = cpuNs()
	}
	atomic.AddInt64(counter, now-begin)
}

//go:noinline
func burnMost() { spin(&mostNs) }

//go:noinline
func burnSome() { spin(&someNs) }

//go:noinline
func burnLeast() { spin(&leastNs) }

func burn(done chan<- bool) {
	runtime.LockOSThread()
	for i := 0; ; i++ {
		switch slice := rand.Intn(10); {
		case slice < 6:
			burnMost()
		case slice < 9:
			burnSome()
		default:
			burnLeast()
		}
		if i%100 == 0 {
			done <- true
		}
	}
}

//go:noinline
func makeGarbage(i int) {
	kept[i%len(kept)] = make([]byte, 1<<(6+i%12))
}

func litter(done chan<- bool) {
	for i := 0; ; i++ {
		makeGarbage(i)
		if i%1000 == 0 {
			done <- true
		}
	}
}

func count(done <-chan bool) {
	for range done {
	}
}

func main() {
	port := flag.Int("port", 0, "to listen at")
	garbage := flag.Bool("garbage", false, "makes garbage")
	flag.Parse()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		os.Exit(1)
	}
	defer listener.Close() // else it is garbage as well
	done := make(chan bool)
	go count(done)
	if *garbage {
		go litter(done)
	} else {
		go burn(done)
	}
	fmt.Println("ready", listener.Addr().(*net.TCPAddr).Port)
	for commands := bufio.NewScanner(os.Stdin); commands.Scan() && commands.Text() != "quit"; {
		fmt.Println("most_ns", atomic.LoadInt64(&mostNs))
		fmt.Println("some_ns", atomic.LoadInt64(&someNs))
		fmt.Println("least_ns", atomic.LoadInt64(&leastNs))
		fmt.Println("ok")
	}
}

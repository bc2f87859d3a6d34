// SPDX-License-Identifier: Apache-2.0
//
// pool PORT: goroutines that wait for work on channels and condition variables and get some now and
// then. `contend runtime` makes threads contend for a lock of Go's runtime: the number of waits is
// not known to the program, only that there are some. See pool.c.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

const workers = 4

type queue struct {
	mutex  sync.Mutex
	filled *sync.Cond
	pieces int
}

func (from *queue) serve() {
	for {
		from.mutex.Lock()
		for from.pieces == 0 {
			from.filled.Wait()
		}
		from.pieces--
		from.mutex.Unlock()
	}
}

func (to *queue) put() {
	to.mutex.Lock()
	to.pieces++
	to.mutex.Unlock()
	to.filled.Signal()
}

func idle() {
	to := &queue{}
	to.filled = sync.NewCond(&to.mutex)
	pieces := make(chan int)
	for i := 0; i < workers; i++ {
		go to.serve()
		go func() {
			runtime.LockOSThread()
			for range pieces {
			}
		}()
	}
	go func() {
		for {
			time.Sleep(20 * time.Millisecond)
			to.put()
			pieces <- 1
		}
	}()
}

// All of them want the lock of one channel at the same time, again and again.
func contend() {
	var group sync.WaitGroup
	end := time.Now().Add(3 * time.Second)
	shared := make(chan int, 1)
	for i := 0; i < 4*workers; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			runtime.LockOSThread()
			for time.Now().Before(end) {
				for j := 0; j < 1000; j++ {
					select {
					case shared <- j:
					case <-shared:
					default:
					}
				}
			}
		}()
	}
	group.Wait()
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	runtime.GOMAXPROCS(8)
	idle()
	fmt.Println("ready", listener.Addr().(*net.TCPAddr).Port)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "contend runtime" {
			contend()
		}
		fmt.Println("ok")
	}
}

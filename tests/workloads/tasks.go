// SPDX-License-Identifier: Apache-2.0

// A service of goroutines: 100 bytes are answered with 100 bytes, after a millisecond under a mutex
// that all of them share. Says `ready PORT`, and ends with its standard input.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

var shared sync.Mutex

func serve(connection net.Conn) {
	message := make([]byte, 100)
	defer connection.Close()
	for {
		if _, err := io.ReadFull(connection, message); err != nil {
			return
		}
		shared.Lock()
		time.Sleep(time.Millisecond)
		shared.Unlock()
		if _, err := connection.Write(message); err != nil {
			return
		}
	}
}

func accept(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			os.Exit(1)
		}
		go serve(connection)
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		os.Exit(1)
	}
	go accept(listener)
	fmt.Println("ready", listener.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
}

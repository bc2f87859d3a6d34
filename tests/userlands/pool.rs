// SPDX-License-Identifier: Apache-2.0
//
// pool PORT: threads that wait for work as Rust's standard library, or parking_lot (--cfg
// parking_lot), lets them, and get some now and then. See pool.c. It answers 100 bytes with 100 bytes,
// once per connection.

#[cfg(parking_lot)]
use parking_lot::{Condvar, Mutex, RwLock};
#[cfg(not(parking_lot))]
use std::sync::{Condvar, Mutex, RwLock};

use std::io::{BufRead, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const WORKERS: usize = 4;
const CONTENDERS: usize = 4;
const CONTEND: Duration = Duration::from_secs(3);
const HOLD: Duration = Duration::from_millis(2);
const THINK: Duration = Duration::from_millis(1);
const TIMEOUT: Duration = Duration::from_millis(100);

// The two libraries differ in what a lock that was poisoned means, and in how a wait takes it.
#[cfg(parking_lot)]
macro_rules! locked {
    ($lock:expr) => {
        $lock
    };
}
#[cfg(not(parking_lot))]
macro_rules! locked {
    ($lock:expr) => {
        $lock.unwrap()
    };
}

struct Queue {
    pieces: Mutex<u32>,
    filled: Condvar,
}

impl Queue {
    fn new() -> Arc<Queue> {
        Arc::new(Queue {
            pieces: Mutex::new(0),
            filled: Condvar::new(),
        })
    }

    // Nobody is woken while the lock is held: there is never a wait for it.
    fn put(&self) {
        *locked!(self.pieces.lock()) += 1;
        self.filled.notify_one();
    }

    #[cfg(parking_lot)]
    fn serve(&self, timeout: Option<Duration>) {
        let mut pieces = self.pieces.lock();
        if *pieces == 0 {
            match timeout {
                Some(limit) => drop(self.filled.wait_for(&mut pieces, limit)),
                None => self.filled.wait(&mut pieces),
            }
        }
        *pieces = pieces.saturating_sub(1);
    }

    #[cfg(not(parking_lot))]
    fn serve(&self, timeout: Option<Duration>) {
        let mut pieces = self.pieces.lock().unwrap();
        if *pieces == 0 {
            pieces = match timeout {
                Some(limit) => self.filled.wait_timeout(pieces, limit).unwrap().0,
                None => self.filled.wait(pieces).unwrap(),
            }
        }
        *pieces = pieces.saturating_sub(1);
    }
}

fn spawn<F: FnOnce() + Send + 'static>(name: &str, main: F) {
    thread::Builder::new()
        .name(name.to_string())
        .spawn(main)
        .unwrap();
}

fn idle() {
    let shared = Queue::new();
    let timed = Queue::new();
    let mut own = Vec::new();
    let (sender, receiver) = mpsc::channel::<u32>();
    for _ in 0..WORKERS {
        let queue = Queue::new();
        own.push(queue.clone());
        spawn("idle-0", move || loop {
            queue.serve(None)
        });
        let queue = shared.clone();
        spawn("idle-1", move || loop {
            queue.serve(None)
        });
    }
    let queue = timed.clone();
    spawn("idle-2", move || loop {
        queue.serve(Some(TIMEOUT))
    });
    spawn("idle-3", move || while receiver.recv().is_ok() {});
    let parked = Arc::new(std::sync::Mutex::new(None));
    let thread = parked.clone();
    spawn("idle-4", move || {
        *thread.lock().unwrap() = Some(thread::current());
        loop {
            thread::park()
        }
    });
    spawn("producer-0", move || {
        for round in 0.. {
            thread::sleep(Duration::from_millis(if round < 16 { 5 } else { 100 }));
            if round % 64 == 8 {
                thread::sleep(Duration::from_secs(2));
            }
            own[round % WORKERS].put();
            if round % 2 == 0 {
                shared.put()
            } else {
                timed.put()
            };
            let _never = &sender;
            if let Some(thread) = parked.lock().unwrap().as_ref() {
                thread.unpark()
            }
        }
    });
}

// The thread pool of "The Rust Programming Language": one worker waits for a connection with the lock in
// its hands, and the others wait for the lock. A client that leaves early is nobody's error.
fn serve(listener: TcpListener) {
    let (sender, receiver) = mpsc::channel::<TcpStream>();
    let receiver = Arc::new(std::sync::Mutex::new(receiver));
    for _ in 0..WORKERS {
        let receiver = receiver.clone();
        spawn("turn-0", move || loop {
            let mut client = receiver.lock().unwrap().recv().unwrap();
            let mut message = [0; 100];
            if client.read_exact(&mut message).is_ok() {
                let _ = client.write_all(&message);
            }
        });
    }
    spawn("acceptor-0", move || {
        for client in listener.incoming() {
            sender.send(client.unwrap()).unwrap();
        }
    });
}

fn contend(kind: &str) -> (u128, u64) {
    let mutex = Arc::new(Mutex::new(0u64));
    let rwlock = Arc::new(RwLock::new(0u64));
    let rw = kind == "rwlock";
    let end = Instant::now() + CONTEND;
    let threads: Vec<_> = (0..CONTENDERS)
        .map(|number| {
            let (mutex, rwlock) = (mutex.clone(), rwlock.clone());
            let main = move || {
                let mut waited = Duration::ZERO;
                let mut count = 0;
                while Instant::now() < end {
                    thread::sleep(THINK);
                    let begin = Instant::now();
                    if !rw {
                        let _guard = locked!(mutex.lock());
                        waited += begin.elapsed();
                        thread::sleep(HOLD);
                    } else if number % 2 == 0 {
                        let _guard = locked!(rwlock.write());
                        waited += begin.elapsed();
                        thread::sleep(HOLD);
                    } else {
                        let _guard = locked!(rwlock.read());
                        waited += begin.elapsed();
                        thread::sleep(HOLD);
                    }
                    count += 1;
                }
                (waited.as_nanos(), count)
            };
            let name = format!("lock-{}", number);
            thread::Builder::new().name(name).spawn(main).unwrap()
        })
        .collect();
    let mut sum = (0, 0);
    for thread in threads {
        let (waited, count) = thread.join().unwrap();
        sum = (sum.0 + waited, sum.1 + count);
    }
    sum
}

fn main() {
    let port = std::env::args().nth(1).unwrap();
    let listener = TcpListener::bind(format!("127.0.0.1:{}", port)).unwrap();
    let port = listener.local_addr().unwrap().port();
    idle();
    serve(listener);
    println!("ready {}", port);
    for line in std::io::stdin().lock().lines() {
        if let Some(kind) = line.unwrap().strip_prefix("contend ") {
            let (waited, count) = contend(kind);
            println!("wait_ns {}\nacquisitions {}", waited, count);
        }
        println!("ok");
    }
}

// SPDX-License-Identifier: Apache-2.0
// As burner.c, in Java: a thread burns CPU time in three functions that call spin.
//
// Commands: anything (most_ns, some_ns, least_ns: CPU time of each), `quit`.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.InetAddress;
import java.net.ServerSocket;

public final class Burner {
	private static final int ROUNDS = 1000000;
	private static final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
	private static volatile long mostNs;
	private static volatile long someNs;
	private static volatile long leastNs;
	private static volatile int result;

	private static int spin(int rounds) {
		int sum = 1;
		for (int i = 0; i < rounds; i++) {
			sum = sum * 48271 + i;
		}
		return sum;
	}

	private static int burnMost() {
		return spin(6 * ROUNDS) + 1;
	}

	private static int burnSome() {
		return spin(3 * ROUNDS) + 2;
	}

	private static int burnLeast() {
		return spin(ROUNDS) + 3;
	}

	private static void work() {
		long begin = threads.getCurrentThreadCpuTime();
		while (true) {
			result = burnMost();
			long most = threads.getCurrentThreadCpuTime();
			result = burnSome();
			long some = threads.getCurrentThreadCpuTime();
			result = burnLeast();
			long least = threads.getCurrentThreadCpuTime();
			mostNs += most - begin;
			someNs += some - most;
			leastNs += least - some;
			begin = least;
		}
	}

	public static void main(String[] arguments) throws IOException {
		BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
		try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
			Thread worker = new Thread(Burner::work, "worker");
			worker.setDaemon(true);
			worker.start();
			System.out.println("ready " + listener.getLocalPort());
			for (String line = commands.readLine(); line != null && !line.equals("quit");
					line = commands.readLine()) {
				System.out.println("most_ns " + mostNs);
				System.out.println("some_ns " + someNs);
				System.out.println("least_ns " + leastNs);
				System.out.println("ok");
			}
		}
	}
}

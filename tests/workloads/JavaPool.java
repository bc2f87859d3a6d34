// SPDX-License-Identifier: Apache-2.0
// JavaPool THREADS PORT [UPSTREAM]: a fixed thread pool that answers 100 bytes with 100 bytes, once
// per connection, after an exchange with the port UPSTREAM. Prints `ready PORT`.

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadPoolExecutor;

public final class JavaPool {
	private static int upstream;

	// As a database driver without a time-out: a blocking read.
	private static void ask(byte[] message) throws IOException {
		try (Socket database = new Socket(InetAddress.getLoopbackAddress(), upstream)) {
			database.getOutputStream().write(message);
			database.getInputStream().readNBytes(message.length);
		}
	}

	private static void serve(Socket connection) {
		try (connection) {
			byte[] message = connection.getInputStream().readNBytes(100);
			if (upstream != 0) {
				ask(message);
			}
			connection.getOutputStream().write(message);
		} catch (IOException gone) {
			// The client left: nothing to answer.
		}
	}

	public static void main(String[] arguments) throws IOException {
		int threads = Integer.parseInt(arguments[0]);
		int port = Integer.parseInt(arguments[1]);
		upstream = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 0;
		ExecutorService pool = Executors.newFixedThreadPool(threads);
		((ThreadPoolExecutor) pool).prestartAllCoreThreads();
		try (ServerSocket listener =
				new ServerSocket(port, 128, InetAddress.getLoopbackAddress())) {
			System.out.println("ready " + listener.getLocalPort());
			while (true) {
				Socket connection = listener.accept();
				pool.submit(() -> serve(connection));
			}
		}
	}
}

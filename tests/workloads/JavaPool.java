// SPDX-License-Identifier: Apache-2.0
// A fixed thread pool that answers 100 bytes with 100 bytes, once per connection. Prints `ready PORT`.

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadPoolExecutor;

public final class JavaPool {
	private static void serve(Socket connection) {
		try (connection) {
			byte[] message = connection.getInputStream().readNBytes(100);
			connection.getOutputStream().write(message);
		} catch (IOException gone) {
			// The client left: nothing to answer.
		}
	}

	public static void main(String[] arguments) throws IOException {
		int threads = Integer.parseInt(arguments[0]);
		ExecutorService pool = Executors.newFixedThreadPool(threads);
		((ThreadPoolExecutor) pool).prestartAllCoreThreads();
		try (ServerSocket listener =
				new ServerSocket(0, 128, InetAddress.getLoopbackAddress())) {
			System.out.println("ready " + listener.getLocalPort());
			while (true) {
				Socket connection = listener.accept();
				pool.submit(() -> serve(connection));
			}
		}
	}
}

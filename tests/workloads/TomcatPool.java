// SPDX-License-Identifier: Apache-2.0
/**
 * An embedded Tomcat whose servlet reads the body and sleeps: TomcatPool PORT THREADS MILLISECONDS.
 */
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;

public final class TomcatPool {
	public static void main(String[] arguments) throws Exception {
		final long work = Long.parseLong(arguments[2]);
		Path directory = Files.createTempDirectory("workload_");
		Tomcat tomcat = new Tomcat();
		Connector connector = new Connector();

		directory.toFile().deleteOnExit();
		connector.setPort(Integer.parseInt(arguments[0]));
		connector.setProperty("address", "127.0.0.1");
		connector.setProperty("maxThreads", arguments[1]);
		connector.setProperty("minSpareThreads", arguments[1]);
		connector.setProperty("maxKeepAliveRequests", "1");
		tomcat.setBaseDir(directory.toString());
		tomcat.setConnector(connector);
		Context context = tomcat.addContext("", directory.toString());
		Tomcat.addServlet(context, "work", new HttpServlet() {
			@Override
			protected void service(HttpServletRequest request, HttpServletResponse response)
				throws IOException {
				request.getInputStream().readAllBytes();
				try {
					Thread.sleep(work);
				} catch (InterruptedException e) {
					Thread.currentThread().interrupt();
				}
				response.getOutputStream().write('x');
			}
		});
		context.addServletMappingDecoded("/", "work");
		tomcat.start();
		tomcat.getServer().await();
	}
}

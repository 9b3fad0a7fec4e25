import java.io.File;
import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.security.ProtectionDomain;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import jdk.internal.org.objectweb.asm.ClassReader;
import jdk.internal.org.objectweb.asm.ClassVisitor;
import jdk.internal.org.objectweb.asm.ClassWriter;
import jdk.internal.org.objectweb.asm.MethodVisitor;
import jdk.internal.org.objectweb.asm.Opcodes;

/**
 * Changes of spymemcached, one of them at a time: the environment variable PLANTED names it.
 *
 * <p>As its classes are loaded, their calls that write to channels and read from them become calls of this class.
 */
public final class Planted {
  private static final String NAME = System.getenv().getOrDefault("PLANTED", "");
  private static final String LIBRARY = "net/spy/memcached/";
  private static final String CHANNEL = "java/nio/channels/SocketChannel";
  private static final String ONE_BUFFER = "(Ljava/nio/ByteBuffer;)I";
  private static final int SMALL = 16;
  private static final int LARGE = 8192;
  private static final int SHORT_US = 50;
  // A JVM that compiles makes calls of its own.
  private static final int MANY = 10;
  private static final File ROOT = new File("/");
  private static final ReentrantLock HELD = new ReentrantLock();
  private static ExecutorService thread;
  private static Selector selector;
  private static Pipe pipe;
  private static SocketChannel asking;
  private static SocketChannel asked;
  private static volatile byte[] kept;

  private Planted() {}

  public static void premain(String options, Instrumentation instrumentation) throws Exception {
    Thread holder = new Thread(HELD::lock);
    holder.start();
    holder.join();
    instrumentation.addTransformer(new Rewritten());
  }

  public static int write(SocketChannel channel, ByteBuffer data) throws Exception {
    switch (NAME) {
      case "two writes":
        return inTwo(channel, data);
      case "Nagle":
        channel.setOption(StandardSocketOptions.TCP_NODELAY, false);
        return inTwo(channel, data);
      case "another thread":
        if (thread == null) thread = Executors.newSingleThreadExecutor(Planted::daemon);
        return thread.submit(() -> channel.write(data)).get();
      default:
        beside(channel);
        return channel.write(data);
    }
  }

  public static int read(SocketChannel channel, ByteBuffer data) throws IOException {
    if (NAME.equals("small reads")) return readLittle(channel, data);
    int read = channel.read(data);
    if (NAME.equals("a copy") && read > 0) kept = new byte[read];
    return read;
  }

  private static Thread daemon(Runnable task) {
    Thread made = new Thread(task);
    made.setDaemon(true);
    return made;
  }

  private static int inTwo(SocketChannel channel, ByteBuffer data) throws IOException {
    ByteBuffer first = data.duplicate();
    first.limit(first.position() + 3);
    int written = channel.write(first);
    data.position(first.position());
    return written + channel.write(data);
  }

  private static int readLittle(SocketChannel channel, ByteBuffer data) throws IOException {
    int limit = data.limit();
    data.limit(Math.min(limit, data.position() + SMALL));
    int read = channel.read(data);
    data.limit(limit);
    return read;
  }

  private static void beside(SocketChannel channel) throws Exception {
    switch (NAME) {
      case "a connection" -> SocketChannel.open(channel.getRemoteAddress()).close();
      case "another request" -> ask(channel);
      case "an empty read" -> channel.read(ByteBuffer.allocate(1));
      case "polls" -> poll();
      case "options" -> channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      case "a lock" -> lockOften();
      case "a pipe" -> signal();
      case "a large buffer" -> kept = new byte[LARGE];
      case "a file" -> lookOften();
      default -> {}
    }
  }

  private static void ask(SocketChannel channel) throws IOException {
    if (asking != channel) asked = SocketChannel.open(channel.getRemoteAddress());
    asking = channel;
    asked.write(ByteBuffer.wrap("mn\r\n".getBytes()));
    asked.read(ByteBuffer.allocate(4));
  }

  private static void poll() throws IOException {
    if (selector == null) selector = Selector.open();
    for (int i = 0; i < 3; i++) selector.selectNow();
  }

  private static void signal() throws IOException {
    if (pipe == null) pipe = Pipe.open();
    pipe.sink().write(ByteBuffer.wrap(new byte[1]));
    pipe.source().read(ByteBuffer.allocate(1));
  }

  private static void lockOften() throws InterruptedException {
    for (int i = 0; i < MANY; i++) HELD.tryLock(SHORT_US, TimeUnit.MICROSECONDS);
  }

  private static void lookOften() {
    for (int i = 0; i < MANY; i++) ROOT.exists();
  }

  private static final class Rewritten implements ClassFileTransformer {
    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> old, ProtectionDomain of, byte[] file) {
      if (!name.startsWith(LIBRARY)) return null;
      ClassWriter changed = new ClassWriter(0);
      new ClassReader(file).accept(new Calls(changed), 0);
      return changed.toByteArray();
    }
  }

  private static final class Calls extends ClassVisitor {
    Calls(ClassVisitor next) {
      super(Opcodes.ASM8, next);
    }

    @Override
    public MethodVisitor visitMethod(int access, String name, String types, String generic, String[] thrown) {
      return new MethodVisitor(Opcodes.ASM8, super.visitMethod(access, name, types, generic, thrown)) {
        @Override
        public void visitMethodInsn(int kind, String owner, String method, String of, boolean isInterface) {
          if (owner.equals(CHANNEL) && of.equals(ONE_BUFFER)) {
            super.visitMethodInsn(Opcodes.INVOKESTATIC, "Planted", method, "(L" + CHANNEL + ";" + of.substring(1), false);
          } else {
            super.visitMethodInsn(kind, owner, method, of, isInterface);
          }
        }
      };
    }
  }
}

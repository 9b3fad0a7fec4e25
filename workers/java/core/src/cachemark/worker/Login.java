package cachemark.worker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** A user and a password. */
public record Login(String user, String password) {
    /** From the option `auth`, `USER:FILE`; the first line of the file is the password. */
    static Login read(String text) {
        int colon = text.indexOf(':');
        try (var lines = Files.lines(Path.of(text.substring(colon + 1)))) {
            return new Login(text.substring(0, colon), lines.findFirst().orElse(""));
        } catch (IOException unreadable) {
            throw new Unsupported("option auth: " + unreadable.getMessage());
        }
    }

    @Override
    public String toString() {
        return user;
    }
}

# An operation of the tape is an array; these are its fields.
package Operation;
use v5.36;

use Exporter 'import';
our @EXPORT = qw(KIND KEY EXPTIME AMOUNT KEYS CODE NUMBERS LENGTH KEY_BYTES GENERATION);

use constant {
    KIND      => 0,    # its name in messages
    KEY       => 1,    # the only key, or the first
    EXPTIME   => 2,
    AMOUNT    => 3,    # a counter's step
    KEYS      => 4,
    CODE      => 5,    # its right result, see Verify
    NUMBERS   => 6,    # the keys' numbers
    LENGTH    => 7,    # the length of the value that it writes or reads
    KEY_BYTES => 8,
    GENERATION => 9,    # of its value, or for a read of the lane's last write of the key before it
};

1;

# An operation of the tape is an array; these are its fields.
package Operation;
use v5.36;

use Exporter 'import';
our @EXPORT = qw(KIND KEY EXPTIME AMOUNT KEYS CODE NUMBERS LENGTH KEY_BYTES GENERATION);

use constant {
    KIND      => 0,    # the name under which it is reported
    KEY       => 1,    # the only one, or the first
    EXPTIME   => 2,
    AMOUNT    => 3,    # of a counter's step
    KEYS      => 4,
    CODE      => 5,    # its result when all is as expected, see Verify
    NUMBERS   => 6,    # the keys' numbers
    LENGTH    => 7,    # of the value that it writes or reads
    KEY_BYTES => 8,
    GENERATION => 9,    # of what it writes; of a read that of the lane's last write of the key before it
};

1;

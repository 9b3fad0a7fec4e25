<?php
// Uses every method of the class SharedStore, as a PHP program would: `php shared_store.php CLASS NAME FOLDER`.
// Exit status 1 with the first thing that is not as it should be.

declare(strict_types=1);

[, $class, $name, $folder] = $argv;
require $class;

function check(bool $is, string $what): void
{
    if (!$is) {
        echo "wrong: $what\n";
        exit(1);
    }
}

function refused(callable $act, string $says): void
{
    try {
        $act();
    } catch (RuntimeException $error) {
        check(str_contains($error->getMessage(), $says), "{$error->getMessage()} has no `$says`");
        return;
    }
    check(false, "nothing was refused: $says");
}

/** What another program says that opens the store. */
function elsewhere(string $code): string
{
    global $class, $name;
    $start = 'require $argv[1]; $store = new SharedStore($argv[2]); ';
    $program = proc_open([PHP_BINARY, '-r', $start . $code, $class, $name], [1 => ['pipe', 'w']], $pipes);
    $said = stream_get_contents($pipes[1]);
    check(proc_close($program) === 0, "the other program failed: $said");
    return $said;
}

SharedStore::init($name, 1 << 20);
refused(fn () => SharedStore::init($name, 1 << 20), 'exists');
refused(fn () => SharedStore::init("$name-small", 100), 'needs 65536 bytes');
refused(fn () => SharedStore::init('a/b', 1 << 20), 'no name of a store');
refused(fn () => new SharedStore("$name-none"), 'make it first');
check(SharedStore::destroy("$name-none") === false, 'a name that is not there');
$store = new SharedStore($name);

// Values come back as they were, in another program, too.
$values = ['text' => "a\0b", 'empty' => '', 'number' => 7, 'below' => -7, 'list' => ['a' => [1, 2.5]], 'none' => null, 'no' => false];
foreach ($values as $key => $value) {
    check($store->add($key, $value), "add $key");
    check($store->get($key, 'default') === $value, "get $key");
}
// An object of a class whose code runs as soon as there is one.
$store->set('object', ['inside' => new ArrayObject([1])]);
$found = $store->get('object')['inside'];
check($found instanceof __PHP_Incomplete_Class, 'an object is made without being asked for');
$trusting = new SharedStore($name, allowedClasses: [ArrayObject::class]);
check($trusting->get('object')['inside'][0] === 1, 'an object of a class that was named');
check((new SharedStore($name, posix_geteuid()))->get('none') === null, 'the owner was named');
refused(fn () => new SharedStore($name, posix_geteuid() + 1), 'name its owner, if you trust that user');

check(elsewhere('echo json_encode([$store->get("list"), $store->add("list", 1), $store->get("new", "x")]);') === '[{"a":[1,2.5]},false,"x"]', 'the other program');
check($store->get('missing') === false && $store->get('missing', 3) === 3, 'a miss');
elsewhere('$store->set("large", str_repeat("x", 100000)); $store->set("past", 1, -1);');
check(strlen($store->get('large')) === 100000, 'a value larger than the buffer');
check($store->get('past') === false, 'an item that has expired');

check($store->incr('number', 35) === 42 && $store->incr('number', -33) === 9 && $store->get('number') === 9, 'a number');
check($store->incr('missing') === false, 'no number');
refused(fn () => $store->incr('list'), 'no number');
$store->set('highest', PHP_INT_MAX);
check($store->incr('highest') === '9223372036854775808' && $store->get('highest') === '9223372036854775808', 'a number beyond PHP');

foreach (['', str_repeat('k', 251)] as $key) {
    refused(fn () => $store->get($key), '1 to 250 bytes');
    refused(fn () => $store->set($key, 1), '1 to 250 bytes');
}
refused(fn () => $store->set('huge', str_repeat('x', 2 << 20)), 'no room');
check($store->delete('text') && !$store->delete('text'), 'delete');

// A child that is killed while it stores.
for ($round = 0; $round < 10; $round++) {
    [$ours, $its] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $child = pcntl_fork();
    if ($child === 0) {
        for ($number = 0;; $number++) {
            $store->set("child-$number", str_repeat('y', 700));
            if ($number === 200) {
                fwrite($its, 'x');
            }
        }
    }
    check(fread($ours, 1) === 'x', 'the child stores');
    posix_kill($child, SIGKILL);
    pcntl_waitpid($child, $status);
    check($store->set('after', $round) && elsewhere('echo $store->get("after");') === (string) $round, 'after a killed writer');
}

$stat = $store->stat();
check($stat['items'] > 0 && $stat['item_bytes'] > 0 && $stat['table_bytes'] > 0 && $stat['limit_bytes'] === 1 << 20, 'stat');
umask(0);
check($store->dump("$folder/dump"), 'dump');
check((fileperms("$folder/dump") & 0777) === 0600, 'a private dump');
check(str_contains(file_get_contents("$folder/dump"), '{"key":"after","flags":1,"expires_s":0,"bytes":1,"value":"9"}'), 'the dump');
refused(fn () => $store->dump("$folder/dump"), 'exists');
check($store->flush() && $store->stat()['items'] === 0, 'flush');

check(SharedStore::destroy($name), 'destroy');
refused(fn () => new SharedStore($name), 'make it first');
check($store->set('still', 'here') && $store->get('still') === 'here', 'who has it open keeps it');

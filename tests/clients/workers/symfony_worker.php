<?php
// A worker with the AMQP transport of Symfony Messenger for the queue QUEUE. It fetches messages with `basic.get`.
require 'Symfony/Component/Messenger/autoload.php';
require 'Symfony/Component/Messenger/Bridge/Amqp/autoload.php';

use Symfony\Component\Messenger\Bridge\Amqp\Transport\AmqpTransportFactory;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;

$options = [
    'exchange' => ['name' => 'work', 'type' => 'direct'],
    'queues' => [getenv('QUEUE') => ['arguments' => ['x-max-length' => 1000], 'binding_keys' => [getenv('QUEUE')]]],
    'auto_setup' => getenv('MODE') !== 'passive',
];
$transport = (new AmqpTransportFactory())->createTransport(getenv('AMQP_URL').'/work', $options, new PhpSerializer());
while (true) {
    try {
        foreach ($transport->get() as $envelope) {
            $transport->ack($envelope);
        }
    } catch (MessageDecodingFailedException) {
        // The transport has rejected the message, because its body is not a PHP object.
    }
    usleep(100_000);
}

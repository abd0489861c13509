// A worker with the connection of @golevelup/nestjs-rabbitmq for the queue QUEUE.
require('reflect-metadata');
const { AmqpConnection } = require('@golevelup/nestjs-rabbitmq');

(async () => {
  const connection = new AmqpConnection({ uri: process.env.AMQP_URL, connectionInitOptions: { wait: true } });
  await connection.init();
  await connection.createSubscriber(
    async () => {},
    {
      queue: process.env.QUEUE,
      createQueueIfNotExists: process.env.MODE !== 'passive',
      queueOptions: { durable: true, arguments: { 'x-max-length': 1000 } },
      allowNonJsonMessages: true,
    },
    'job',
  );
})();

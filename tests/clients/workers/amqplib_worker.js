// An amqplib worker for the queue QUEUE. It ignores the null message of a canceled consumer.
const amqp = require('amqplib');

(async () => {
  const connection = await amqp.connect(process.env.AMQP_URL);
  const channel = await connection.createChannel();
  const queue = process.env.QUEUE;
  if (process.env.MODE !== 'passive') {
    await channel.assertQueue(queue, { durable: true, maxLength: 1000 });
  }
  await channel.consume(queue, (message) => message && channel.ack(message));
})();

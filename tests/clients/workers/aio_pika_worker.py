# An aio-pika worker with a robust connection for the queue QUEUE.
import asyncio
import os

import aio_pika


async def main():
    connection = await aio_pika.connect_robust(os.environ["AMQP_URL"])
    channel = await connection.channel()
    name = os.environ["QUEUE"]
    if os.environ["MODE"] == "passive":
        queue = await channel.get_queue(name)
    else:
        queue = await channel.declare_queue(name, durable=True, arguments={"x-max-length": 1000})
    async def job(message):
        await message.ack()
    await queue.consume(job)
    await asyncio.Future()


asyncio.run(main())

# A FastStream worker for the queue QUEUE.
import asyncio
import os

from faststream import FastStream
from faststream.rabbit import RabbitBroker, RabbitQueue

broker = RabbitBroker(os.environ["AMQP_URL"])
declare = os.environ["MODE"] != "passive"
queue = RabbitQueue(os.environ["QUEUE"], durable=True, declare=declare, arguments={"x-max-length": 1000})


@broker.subscriber(queue)
async def job(body: bytes):
    pass


asyncio.run(FastStream(broker).run())

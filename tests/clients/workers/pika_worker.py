# A pika worker with a blocking connection for the queue QUEUE.
import os

import pika

connection = pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"]))
channel = connection.channel()
name = os.environ["QUEUE"]
if os.environ["MODE"] != "passive":
    channel.queue_declare(name, durable=True, arguments={"x-max-length": 1000})
channel.basic_consume(name, lambda channel, method, properties, body: channel.basic_ack(method.delivery_tag))
channel.start_consuming()

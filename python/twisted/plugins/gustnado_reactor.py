"""Lets `twistd --reactor=gustnado` find the reactor."""

from twisted.application.reactors import Reactor

gustnado = Reactor(
    "gustnado", "gustnado.twisted", "Gustnado's reactor, which serves HTTP natively."
)

"""Does an evaluation under simulated users say what people would have said?"""

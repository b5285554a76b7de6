# problem: relu
# verdict: rejected
# says: SyntaxError
def forward(x

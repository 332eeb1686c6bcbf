"""What makes a diagnosis one that can be checked: question it, correct it, ask what it rests on."""

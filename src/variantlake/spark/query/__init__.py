"""One query of a user: analysed, planned, and written anew if that makes it faster.

In: SQL text. Out: a DataFrame with the same answer. Classic sessions are analysed by Catalyst
(`plans`), Connect, which shows no plan, by the text.
"""
